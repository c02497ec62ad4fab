package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"envapi/core"
	"envapi/internal/random"
)

func lastActivity(t testing.TB, s *Store, o core.Owner, id string) time.Time {
	t.Helper()
	e, err := s.Environment(context.Background(), o, id)
	if err != nil {
		t.Fatal(err)
	}
	return e.LastActivityAt
}

func TestTouchesMoveTheLastActivityForwardOnly(t *testing.T) {
	s := openNew(t)
	ctx := t.Context()
	mustCreate(t, s, alice, "env_1", "env_2")
	mustCreate(t, s, bob, "bobs")
	later := noon.Add(time.Hour)
	touch := func(active map[string]time.Time) {
		t.Helper()
		if err := s.TouchEnvironments(ctx, active); err != nil {
			t.Fatal(err)
		}
	}
	want := func(id string, o core.Owner, at time.Time) {
		t.Helper()
		if got := lastActivity(t, s, o, id); !got.Equal(core.At(at).Time) {
			t.Errorf("%s was active at %v, want %v", id, got, at)
		}
	}
	want("env_1", alice, noon) // it is remembered now
	touch(map[string]time.Time{"env_1": later, "bobs": later.Add(1), "gone": later})
	want("env_1", alice, later)
	want("bobs", bob, later)
	want("env_2", alice, noon)
	touch(map[string]time.Time{"env_1": noon, "env_2": noon.Add(-time.Hour)})
	want("env_1", alice, later)
	want("env_2", alice, noon)
	touch(nil)

	// Nobody else moves it back: neither who changes the record, nor a shell.
	_, err := s.UpdateEnvironment(ctx, alice, "env_1", func(e *core.EnvironmentRecord) error {
		e.LastActivityAt = noon
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustOpen(t, s, alice, "env_1", "sh_1") // at noon
	if err := s.UpdateShell(ctx, "sh_1", 1, 1, noon.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseShell(ctx, "sh_1", closed(core.CloseByCaller)); err != nil {
		t.Fatal(err)
	}
	want("env_1", alice, later)
	if sh, err := s.Shell(ctx, alice, "sh_1"); err != nil || !sh.LastActivityAt.Equal(core.At(noon.Add(time.Minute)).Time) {
		t.Errorf("%+v, %v", sh, err)
	}
}

func TestWhatWasUsedLaterThanNowWasUsedNow(t *testing.T) {
	s := openNew(t)
	mustCreate(t, s, alice, "ahead", "behind", "archived")
	mustCreate(t, s, bob, "bobs")
	later := noon.Add(time.Hour)
	err := s.TouchEnvironments(t.Context(), map[string]time.Time{"ahead": later, "archived": later, "bobs": later})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.TurnEnvironment(t.Context(), alice, "archived", plenty, func(e *core.EnvironmentRecord) error {
		e.State = core.StateArchived
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	now := noon.Add(time.Minute)
	lastActivity(t, s, alice, "ahead") // it is remembered now
	for range 2 {
		if err := s.EndFuture(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]time.Time{"ahead": now, "behind": noon, "archived": later} {
			if got := lastActivity(t, s, alice, id); !got.Equal(core.At(want).Time) {
				t.Errorf("%s was used at %v, want %v", id, got, want)
			}
		}
		if got := lastActivity(t, s, bob, "bobs"); !got.Equal(core.At(now).Time) {
			t.Errorf("bob's was used at %v", got)
		}
	}
}

func TestManyAreTouchedAtOnce(t *testing.T) {
	s := openNew(t)
	active := map[string]time.Time{}
	for i := range changeAtOnce + 2 {
		id := fmt.Sprint("env_", i)
		mustCreate(t, s, alice, id)
		active[id] = noon.Add(time.Duration(i) * time.Second)
	}
	if err := s.TouchEnvironments(t.Context(), active); err != nil {
		t.Fatal(err)
	}
	for id, at := range active {
		if got := lastActivity(t, s, alice, id); !got.Equal(core.At(at).Time) {
			t.Errorf("%s: %v, want %v", id, got, at)
		}
	}
}

// Whatever comes in whatever order, the last activity is the latest.
func TestTouchesAtOneMoment(t *testing.T) {
	s := openNew(t)
	mustCreate(t, s, alice, "env_1")
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			at := noon.Add(time.Duration(i*37%50) * time.Minute)
			if err := s.TouchEnvironments(context.Background(), map[string]time.Time{"env_1": at}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := lastActivity(t, s, alice, "env_1"); !got.Equal(core.At(noon.Add(49 * time.Minute)).Time) {
		t.Errorf("%v", got)
	}
}

// idleIDs gives the ids of all pages.
func idleIDs(t interface{ Fatal(...any) }, s *Store, before time.Time, limit int) (ids []string) {
	for cursor, pages := "", 0; ; pages++ {
		idle, next, err := s.IdleEnvironments(context.Background(), before, cursor, limit)
		if err != nil || len(idle) > limit || pages > 100 {
			t.Fatal(len(idle), pages, err)
		}
		for _, e := range idle {
			ids = append(ids, e.ID)
		}
		if cursor = next; next == "" {
			return ids
		}
	}
}

func TestIdleEnvironments(t *testing.T) {
	s := openNew(t)
	for i, e := range []struct {
		o     core.Owner
		after time.Duration
		state core.EnvironmentState
	}{
		{alice, 3 * time.Hour, core.StateActive},
		{bob, time.Hour, core.StateActive},
		{alice2, 0, core.StateActive},
		{alice, time.Hour, core.StateActive}, // as long as bob's
		{alice, 0, core.StateArchived},
		{alice, 0, core.StateRestoring},
		{alice, -90 * 365 * 24 * time.Hour, core.StateActive}, // before 1970
	} {
		made := env(e.o, fmt.Sprint(i))
		made.State, made.LastActivityAt = e.state, noon.Add(e.after)
		if _, _, err := s.CreateEnvironment(t.Context(), made, plenty, noUIDs, noKey); err != nil {
			t.Fatal(err)
		}
	}
	for before, want := range map[time.Duration]string{
		-time.Hour: "[6]", 0: "[6]", time.Minute: "[6 2]", time.Hour: "[6 2]", time.Hour + time.Millisecond: "[6 2 1 3]", 24 * time.Hour: "[6 2 1 3 0]",
	} {
		for _, limit := range []int{1, 2, 3, 50} {
			if got := fmt.Sprint(idleIDs(t, s, noon.Add(before), limit)); got != want {
				t.Errorf("before noon%+v by %d: %s, want %s", before, limit, got, want)
			}
		}
	}
	if _, _, err := s.IdleEnvironments(t.Context(), noon, "garbage", 1); err == nil {
		t.Error("a cursor that was not given is taken")
	}
}

// However the times are and the pages long, each idle one comes once, in order.
func TestIdleEnvironmentsInPages(t *testing.T) {
	s := openNew(t)
	times := map[string]time.Time{}
	for i := range 30 {
		id := fmt.Sprint("env_", i)
		mustCreate(t, s, alice, id)
		times[id] = noon
	}
	random.Check(t, func(t *rapid.T) {
		for id, at := range times {
			times[id] = at.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, id)) * time.Second)
		}
		if err := s.TouchEnvironments(context.Background(), times); err != nil {
			t.Fatal(err)
		}
		before := noon.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "before")) * time.Second)
		got := idleIDs(t, s, before, rapid.IntRange(1, 31).Draw(t, "limit"))
		want := 0
		for _, at := range times {
			if core.At(at).Before(core.At(before).Time) {
				want++
			}
		}
		if sorted := slices.IsSortedFunc(got, func(a, b string) int { return times[a].Compare(times[b]) }); !sorted || len(got) != want {
			t.Fatalf("got %v, want %d", got, want)
		}
		if slices.Sort(got); len(slices.Compact(got)) != want {
			t.Fatalf("some came twice: %v", got)
		}
	})
}
