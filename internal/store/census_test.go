package store

import (
	"maps"
	"testing"

	"envapi/core"
)

func TestStatesAreCountedOverAllOwners(t *testing.T) {
	s := openNew(t)
	want := func(want map[core.EnvironmentState]int) {
		t.Helper()
		got, err := s.CountStates(t.Context())
		if err != nil || !maps.Equal(got, want) {
			t.Fatalf("%v %v, want %v", got, err, want)
		}
	}
	want(map[core.EnvironmentState]int{})
	mustCreate(t, s, alice, "env_1", "env_2")
	mustCreate(t, s, bob, "env_3")
	_, err := s.UpdateEnvironment(t.Context(), alice, "env_2", func(e *core.EnvironmentRecord) error {
		e.State = core.StateResetting
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want(map[core.EnvironmentState]int{core.StateActive: 2, core.StateResetting: 1})
}
