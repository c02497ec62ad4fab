package store

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"envapi/core"
)

// making is one of the ways to make something under a key.
type making struct {
	name string
	make func(s *Store, o core.Owner, id string, k core.Idempotency) (made string, again bool, err error)
	undo func(s *Store, id string) error
}

var makings = []making{
	{"environment", func(s *Store, o core.Owner, id string, k core.Idempotency) (string, bool, error) {
		e, again, err := s.CreateEnvironment(context.Background(), env(o, id), core.EnvironmentQuota{PerAccount: 30, PerProfile: 20}, noUIDs, k)
		return e.ID, again, err
	}, func(s *Store, id string) error { return s.DropEnvironment(context.Background(), id) }},
	{"command", func(s *Store, o core.Owner, id string, k core.Idempotency) (string, bool, error) {
		c, _, again, err := s.CreateCommand(context.Background(), cmd(o, "env_of_"+o.Account+o.Profile, id), 20, k)
		return c.ID, again, err
	}, func(s *Store, id string) error { return s.DropCommand(context.Background(), id) }},
	{"shell", func(s *Store, o core.Owner, id string, k core.Idempotency) (string, bool, error) {
		sh, _, again, err := s.CreateShell(context.Background(), shell(o, "env_of_"+o.Account+o.Profile, id), 20, k)
		return sh.ID, again, err
	}, func(s *Store, id string) error { return s.DropShell(context.Background(), id) }},
}

func prepareOwners(t *testing.T, s *Store) {
	t.Helper()
	for _, o := range []core.Owner{alice, alice2, bob} {
		mustCreate(t, s, o, "env_of_"+o.Account+o.Profile)
	}
}

func TestB17TheSameKeyMakesOnce(t *testing.T) {
	for _, m := range makings {
		t.Run(m.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "envapi.db")
			s := openAt(t, path)
			prepareOwners(t, s)
			for i, want := range []bool{false, true} {
				made, again, err := m.make(s, alice, fmt.Sprint("id", i), key("k", "f"))
				if err != nil || made != "id0" || again != want {
					t.Errorf("time %d: %q, %v, %v", i, made, again, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openAt(t, path)
			wantMade(t, s, alice, key("k", "f"), "id0")
			if made, again, err := m.make(s, alice, "id3", key("k", "f")); err != nil || made != "id0" || !again {
				t.Errorf("after a restart: %q, %v, %v", made, again, err)
			}
			made, again, err := m.make(s, alice, "id4", key("k", "other"))
			if core.AsError(err).Code != core.CodeIdempotencyMismatch || made != "" || again {
				t.Errorf("with another input: %q, %v, %v", made, again, err)
			}
		})
	}
}

func TestB17TheSameKeyFromTwentyClientsMakesOnce(t *testing.T) {
	for _, m := range makings {
		t.Run(m.name, func(t *testing.T) {
			s := openNew(t)
			prepareOwners(t, s)
			var mu sync.Mutex
			made, first := map[string]int{}, 0
			together(t, 20, "", func(i int) error {
				id, again, err := m.make(s, alice, fmt.Sprint("id", i), key("k", "f"))
				mu.Lock()
				defer mu.Unlock()
				made[id]++
				if !again {
					first++
				}
				return err
			})
			if len(made) != 1 || first != 1 {
				t.Errorf("made %v, %d for the first time", made, first)
			}
		})
	}
}

func TestKeysAreTheirOwnersAndTheirOperations(t *testing.T) {
	for _, m := range makings {
		t.Run(m.name, func(t *testing.T) {
			s := openNew(t)
			prepareOwners(t, s)
			uses := []struct {
				owner core.Owner
				key   core.Idempotency
			}{
				{alice2, core.Idempotency{Operation: "op", Key: "k", Fingerprint: "g"}},
				{alice, core.Idempotency{Operation: "op", Key: "k", Fingerprint: "f"}},
				{bob, core.Idempotency{Operation: "op", Key: "k", Fingerprint: "h"}},
				{alice, core.Idempotency{Operation: "other", Key: "k", Fingerprint: "i"}},
				{alice, core.Idempotency{Operation: "op", Key: "K", Fingerprint: "j"}},
				{alice, core.Idempotency{Operation: "op", Key: "k\x00", Fingerprint: "k"}},
				{alice, core.Idempotency{Operation: "op", Key: "k ", Fingerprint: "l"}},
				{alice, core.Idempotency{Operation: "op", Key: "", Fingerprint: "f"}},
				{alice, core.Idempotency{Operation: "op", Key: "", Fingerprint: "f"}},
			}
			for i, use := range uses {
				id := fmt.Sprint("id", i)
				if made, again, err := m.make(s, use.owner, id, use.key); err != nil || again || made != id {
					t.Errorf("%v %+v: %q, %v, %v", use.owner, use.key, made, again, err)
				}
			}
			for i, use := range uses {
				id := fmt.Sprint("id", i)
				if made, again, err := m.make(s, use.owner, "new"+id, use.key); use.key.Key != "" && (err != nil || !again || made != id) {
					t.Errorf("again %v %+v: %q, %v, %v", use.owner, use.key, made, again, err)
				}
			}
		})
	}
}

func TestWhatFailedLeavesItsKeyFree(t *testing.T) {
	for _, m := range makings {
		t.Run(m.name, func(t *testing.T) {
			s := openNew(t)
			prepareOwners(t, s)
			var err error
			n := 0
			for ; err == nil; n++ {
				_, _, err = m.make(s, alice, fmt.Sprint("id", n), key(n, "f"))
			}
			if core.AsError(err).Code != core.CodeQuotaExceeded {
				t.Fatal(err)
			}
			if err := m.undo(s, "id0"); err != nil {
				t.Fatal(err)
			}
			last := fmt.Sprint("id", n-1)
			if made, again, err := m.make(s, alice, last, key(n-1, "another input")); err != nil || again || made != last {
				t.Errorf("%q, %v, %v", made, again, err)
			}
		})
	}
}

func TestTheKeyOfADeletedEnvironmentIsNotFound(t *testing.T) {
	s := openNew(t)
	create := func(id string, fingerprint string) error {
		_, _, err := s.CreateEnvironment(context.Background(), env(alice, id), plenty, noUIDs, key("k", fingerprint))
		return err
	}
	if err := create("env_1", "f"); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteEnvironment(context.Background(), alice, "env_1"); err != nil {
		t.Fatal(err)
	}
	if err := create("env_2", "f"); core.AsError(err).Code != core.CodeNotFound {
		t.Errorf("the same input: %v", err)
	}
	if err := create("env_2", "g"); core.AsError(err).Code != core.CodeIdempotencyMismatch {
		t.Errorf("another input: %v", err)
	}
}

func wantMade(t *testing.T, s *Store, o core.Owner, k core.Idempotency, want string) {
	t.Helper()
	if id, err := s.Made(context.Background(), o, k); err != nil || id != want {
		t.Errorf("under %+v of %v is %q, %v, want %q", k, o, id, err, want)
	}
}

func TestWhatWasMadeUnderAKeyIsTold(t *testing.T) {
	s := openNew(t)
	prepareOwners(t, s)
	for i, m := range makings {
		id, k := fmt.Sprint("id", i), key(i, "f")
		wantMade(t, s, alice, k, "")
		if _, _, err := m.make(s, alice, id, k); err != nil {
			t.Fatal(err)
		}
		wantMade(t, s, alice, k, id)
		wantMade(t, s, alice2, k, "")
		wantMade(t, s, bob, k, "")
		wantMade(t, s, alice, noKey, "")
		if made, err := s.Made(t.Context(), alice, key(i, "g")); core.AsError(err).Code != core.CodeIdempotencyMismatch || made != "" {
			t.Errorf("another input: %q, %v", made, err)
		}
		if err := m.undo(s, id); err != nil {
			t.Fatal(err)
		}
		wantMade(t, s, alice, k, "")
	}
}

func TestKeysOfWhatRanGoWithTheirEnvironment(t *testing.T) {
	s := openNew(t)
	ctx := t.Context()
	mustCreate(t, s, alice, "env_1")
	for i := range removeAtOnce + 1 { // more than one transaction removes
		id := fmt.Sprint("sh_", i)
		if _, _, _, err := s.CreateShell(ctx, shell(alice, "env_1", id), 1<<20, key(id, "f")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DeleteEnvironment(ctx, alice, "env_1"); err != nil {
		t.Fatal(err)
	}
	var keys int
	if err := s.reads.row(ctx, `SELECT count(*) FROM idempotency`).Scan(&keys); err != nil || keys != 0 {
		t.Errorf("%d keys are left, %v", keys, err)
	}
}
