package store

import (
	"context"
	"maps"
	"testing"

	"envapi/core"
)

// Not parallel, as none in this package is: the counts are the process's.
func TestOnlyFailuresAreCounted(t *testing.T) {
	s := openNew(t)
	before := Failures()
	if len(before) != 4 {
		t.Fatalf("the kinds are %v", before)
	}
	mustCreate(t, s, alice, "env_1")
	if _, err := s.Environment(t.Context(), bob, "env_1"); err == nil {
		t.Fatal("found another's")
	}
	_, err := s.UpdateEnvironment(t.Context(), alice, "env_1", func(*core.EnvironmentRecord) error {
		return core.Errorf(core.CodeEnvironmentBusy, "no")
	})
	if err == nil {
		t.Fatal("updated")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.CountStates(gone); err == nil {
		t.Fatal("counted for nobody")
	}
	if now := Failures(); !maps.Equal(now, before) {
		t.Errorf("refusals count: %v, before %v", now, before)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CountStates(t.Context()); err == nil {
		t.Fatal("a closed store counts")
	}
	if now := Failures(); now[failedOther] != before[failedOther]+1 {
		t.Errorf("a failure does not count: %v, before %v", now, before)
	}
}
