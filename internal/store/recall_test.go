package store

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"

	"envapi/core"
)

func TestWhatIsRememberedIsNeverOld(t *testing.T) {
	s := openNew(t)
	ctx := t.Context()
	made, _, err := s.CreateEnvironment(ctx, env(alice, "env_1"), plenty, noUIDs, noKey)
	if err != nil {
		t.Fatal(err)
	}
	rename := func(name string) {
		_, err := s.UpdateEnvironment(ctx, alice, made.ID, func(e *core.EnvironmentRecord) error {
			e.Name, e.Labels = name, map[string]string{"n": name}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	stop, readers := make(chan struct{}), sync.WaitGroup{}
	for range 4 { // they fill it at every moment
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = s.Environment(ctx, alice, made.ID)
				}
			}
		})
	}
	for i := range 200 {
		name := strconv.Itoa(i)
		rename(name)
		e, err := s.Environment(ctx, alice, made.ID)
		if err != nil {
			t.Fatal(err)
		}
		if e.Name != name || e.Labels["n"] != name {
			t.Fatalf("after it was named %s it is %q", name, e.Name)
		}
		e.Labels["n"] = "spoilt by the reader"
	}
	close(stop)
	readers.Wait()
	if _, err := s.Environment(ctx, bob, made.ID); !errors.Is(err, core.ErrNoRecord) {
		t.Errorf("another's is given: %v", err)
	}
	if err := s.DeleteEnvironment(context.Background(), alice, made.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Environment(ctx, alice, made.ID); !errors.Is(err, core.ErrNoRecord) {
		t.Errorf("a deleted one is given: %v", err)
	}
}

func TestRecallIsBounded(t *testing.T) {
	var r recall
	for i := range mostRecalled + 10 {
		r.keep(core.EnvironmentRecord{ID: strconv.Itoa(i)}, 0)
	}
	if len(r.records) > mostRecalled {
		t.Errorf("%d are remembered", len(r.records))
	}
}
