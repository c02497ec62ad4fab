package store

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"envapi/core"
	"envapi/internal/random"
)

func createWithUID(s *Store, id string, uids core.UIDRange) (int, error) {
	e, _, err := s.CreateEnvironment(context.Background(), env(alice, id), plenty, uids, noKey)
	return e.HostUID, err
}

func mustHaveUID(t *testing.T, s *Store, id string, uids core.UIDRange, want int) {
	t.Helper()
	if uid, err := createWithUID(s, id, uids); err != nil || uid != want {
		t.Errorf("%s has uid %d, %v, want %d", id, uid, err, want)
	}
}

func mustDelete(t *testing.T, s *Store, release bool, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := s.DeleteEnvironment(context.Background(), alice, id); err != nil {
			t.Fatal(err)
		}
		if release {
			if err := s.ReleaseUID(context.Background(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAUIDStaysTakenUntilItIsReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envapi.db")
	s := openAt(t, path)
	ctx := context.Background()
	uids := core.UIDRange{First: 100, End: 102}
	mustHaveUID(t, s, "a", uids, 100)
	mustHaveUID(t, s, "b", uids, 101)

	if err := s.ReleaseUID(ctx, "a"); err == nil {
		t.Error("the uid of an environment that exists was released")
	}
	mustDelete(t, s, false, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, path)
	if ids, err := s.UnreleasedUIDs(ctx); err != nil || !slices.Equal(ids, []string{"a"}) {
		t.Errorf("unreleased: %v, %v", ids, err)
	}
	_, err := createWithUID(s, "c", uids)
	if e := core.AsError(err); e.Code != core.CodeUnavailable || e.Facts["retry_after_ms"] == nil {
		t.Errorf("with every uid taken: %v", err)
	}
	for range 2 {
		if err := s.ReleaseUID(ctx, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if ids, err := s.UnreleasedUIDs(ctx); err != nil || len(ids) != 0 {
		t.Errorf("unreleased: %v, %v", ids, err)
	}
	mustHaveUID(t, s, "c", uids, 100)
}

func TestUIDsThatWereNeverUsedComeFirst(t *testing.T) {
	s := openNew(t)
	uids := core.UIDRange{First: 100, End: 104}
	mustHaveUID(t, s, "a", uids, 100)
	mustHaveUID(t, s, "b", uids, 101)
	mustHaveUID(t, s, "c", uids, 102)
	// Each in a millisecond of its own, so that the order is the releases'.
	for i, id := range []string{"b", "c", "a"} {
		mustDelete(t, s, true, id)
		if _, err := s.durable.exec(context.Background(), `UPDATE host_uids SET released_ms = ? WHERE released_ms > 100`, i); err != nil {
			t.Fatal(err)
		}
	}
	mustHaveUID(t, s, "d", uids, 103) // never used
	mustHaveUID(t, s, "e", uids, 101) // released first
	mustHaveUID(t, s, "f", uids, 102)
	mustHaveUID(t, s, "g", uids, 100)
}

func TestAChangedUIDRangeIsUsedWhole(t *testing.T) {
	s := openNew(t)
	mustHaveUID(t, s, "a", core.UIDRange{First: 103, End: 104}, 103)
	mustHaveUID(t, s, "b", core.UIDRange{First: 106, End: 107}, 106)
	seen := map[int]bool{}
	for i := range 8 {
		uid, err := createWithUID(s, fmt.Sprint("c", i), core.UIDRange{First: 100, End: 110})
		if err != nil || uid < 100 || uid >= 110 || uid == 103 || uid == 106 || seen[uid] {
			t.Errorf("%d: uid %d, %v after %v", i, uid, err, seen)
		}
		seen[uid] = true
	}
	if uid, err := createWithUID(s, "d", core.UIDRange{First: 100, End: 110}); core.AsError(err).Code != core.CodeUnavailable {
		t.Errorf("one more: %d, %v", uid, err)
	}
	for _, odd := range []core.UIDRange{{First: 200, End: 200}, {First: 200, End: 199}} {
		if uid, err := createWithUID(s, "d", odd); core.AsError(err).Code != core.CodeUnavailable {
			t.Errorf("of %v: %d, %v", odd, uid, err)
		}
	}
	for _, root := range []core.UIDRange{{First: 0, End: 10}, {First: -1, End: 10}} {
		if uid, err := createWithUID(s, "d", root); err == nil {
			t.Errorf("of %v: %d", root, uid)
		}
	}
	mustHaveUID(t, s, "d", noUIDs, 0)
	mustHaveUID(t, s, "e", noUIDs, 0)
}

func TestUIDsAreUniqueUnderConcurrency(t *testing.T) {
	s := openNew(t)
	var mu sync.Mutex
	owners := map[int]int{}
	made := together(t, 60, core.CodeUnavailable, func(i int) error {
		uid, err := createWithUID(s, fmt.Sprint("e", i), core.UIDRange{First: 1000, End: 1040})
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			owners[uid]++
		}
		return err
	})
	if made != 40 || len(owners) != 40 {
		t.Errorf("made %d with %d uids: %v", made, len(owners), owners)
	}
}

// Whatever happens in whatever order, no two environments, living or with
// files left, have one uid, and a uid is refused only when all are taken.
func TestUIDsAgainstAModel(t *testing.T) {
	random.Check(t, func(r *rapid.T) {
		ctx := context.Background()
		s, err := Open(ctx, emptyStore(t))
		if err != nil {
			r.Fatal(err)
		}
		defer s.Close()
		hasten(r, s)
		alive, dead := map[string]int{}, map[string]int{}
		next := 0
		pick := func(of map[string]int) string {
			return rapid.SampledFrom(slices.Sorted(maps.Keys(of))).Draw(r, "id")
		}
		r.Repeat(map[string]func(*rapid.T){
			"create": func(r *rapid.T) {
				first := rapid.IntRange(1, 6).Draw(r, "first")
				uids := core.UIDRange{First: first, End: first + rapid.IntRange(1, 5).Draw(r, "size")}
				taken := map[int]bool{}
				for _, uid := range slices.Concat(slices.Collect(maps.Values(alive)), slices.Collect(maps.Values(dead))) {
					taken[uid] = taken[uid] || (uid >= uids.First && uid < uids.End)
				}
				maps.DeleteFunc(taken, func(_ int, in bool) bool { return !in })
				next++
				id := fmt.Sprint("e", next)
				uid, err := createWithUID(s, id, uids)
				switch full := len(taken) == uids.End-uids.First; {
				case full && core.AsError(err).Code == core.CodeUnavailable:
				case !full && err == nil && !taken[uid] && uid >= uids.First && uid < uids.End:
					alive[id] = uid
				default:
					r.Fatalf("of %v with %v taken: %d, %v", uids, taken, uid, err)
				}
			},
			"delete": func(r *rapid.T) {
				if len(alive) == 0 {
					r.Skip()
				}
				id := pick(alive)
				if err := s.DeleteEnvironment(ctx, alice, id); err != nil {
					r.Fatal(err)
				}
				dead[id] = alive[id]
				delete(alive, id)
			},
			"release": func(r *rapid.T) {
				if len(dead) == 0 {
					r.Skip()
				}
				id := pick(dead)
				if err := s.ReleaseUID(ctx, id); err != nil {
					r.Fatal(err)
				}
				delete(dead, id)
			},
			"": func(r *rapid.T) {
				ids, err := s.UnreleasedUIDs(ctx)
				if err != nil || len(ids) != len(dead) {
					r.Fatalf("unreleased %v, %v; dead %v", ids, err, dead)
				}
				if uids, err := s.TakenUIDs(ctx); err != nil || len(uids) != len(dead)+len(alive) {
					r.Fatalf("taken %v, %v; alive %v, dead %v", uids, err, alive, dead)
				}
			},
		})
	})
}
