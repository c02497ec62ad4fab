package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"envapi/core"
	"envapi/internal/random"
)

var packed = core.Archive{At: core.At(noon).Time, Bytes: 10, Content: core.DiskUse{Bytes: 100, Files: 3}}

// to is a change of an environment's state, with an archive or without one.
func to(state core.EnvironmentState, archive *core.Archive) func(*core.EnvironmentRecord) error {
	return func(e *core.EnvironmentRecord) error {
		e.State, e.Archive = state, archive
		return nil
	}
}

func mustTurn(t testing.TB, s *Store, o core.Owner, id string, state core.EnvironmentState, archive *core.Archive) {
	t.Helper()
	if _, err := s.TurnEnvironment(context.Background(), o, id, plenty, to(state, archive)); err != nil {
		t.Fatal(err)
	}
}

func TestTurnEnvironmentKeepsTheArchiveAndTheIdleTime(t *testing.T) {
	s := openNew(t)
	ctx := t.Context()
	mustCreate(t, s, alice, "env_1")
	idle := 5 * time.Minute
	turned, err := s.TurnEnvironment(ctx, alice, "env_1", plenty, func(e *core.EnvironmentRecord) error {
		e.State, e.Archive, e.Idle = core.StateArchived, &packed, &idle
		return nil
	})
	want := env(alice, "env_1")
	want.CreatedAt, want.LastActivityAt = core.At(noon).Time, core.At(noon).Time
	want.State, want.Archive, want.Idle = core.StateArchived, &packed, &idle
	if err != nil || !reflect.DeepEqual(turned, want) {
		t.Errorf("turned to\n%+v, %v, want\n%+v", turned, err, want)
	}
	mustTurn(t, s, alice, "env_1", core.StateActive, nil)
	updated, err := s.UpdateEnvironment(ctx, alice, "env_1", func(e *core.EnvironmentRecord) error {
		e.Idle = nil
		return nil
	})
	if err != nil || updated.Archive != nil || updated.Idle != nil || updated.State != core.StateActive {
		t.Errorf("%+v, %v", updated, err)
	}
	if _, err := s.TurnEnvironment(ctx, bob, "env_1", plenty, to(core.StateDeleting, nil)); !errors.Is(err, core.ErrNoRecord) {
		t.Errorf("another's: %v", err)
	}
	mine := errors.New("mine")
	if _, err := s.TurnEnvironment(ctx, alice, "env_1", plenty, func(*core.EnvironmentRecord) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("the error of change became %v", err)
	}
}

// standings is how environments count, written down by itself: in use, archived.
var standings = []struct {
	state           core.EnvironmentState
	packed          bool
	inUse, archived int
}{
	{core.StateActive, false, 1, 0},
	{core.StateArchiving, false, 1, 1},
	{core.StateArchived, true, 0, 1},
	{core.StateRestoring, true, 1, 1},
	{core.StateRestoring, false, 1, 0}, // a fork that is being made
	{core.StateResetting, false, 1, 0},
	{core.StateDeleting, false, 1, 0},
	{core.StateDeleting, true, 0, 1}, // one that was archived
}

func TestEnvironmentsCountByTheirState(t *testing.T) {
	s := openNew(t)
	for i, c := range standings {
		o := core.Owner{Account: fmt.Sprint("a", i), Profile: "p"}
		e := env(o, fmt.Sprint("env_", i))
		e.State = c.state
		if c.packed {
			e.Archive = &packed
		}
		if got, want := countedAs(e), (standing{c.inUse == 1, c.archived == 1}); got != want {
			t.Errorf("%s, packed %v: counted as %+v", c.state, c.packed, got)
		}
		if _, _, err := s.CreateEnvironment(t.Context(), e, plenty, noUIDs, noKey); err != nil {
			t.Fatal(err)
		}
		for profile, inProfile := range map[string]int{"p": c.inUse, "q": 0} {
			count, err := s.CountEnvironments(t.Context(), core.Owner{Account: o.Account, Profile: profile})
			if want := (core.EnvironmentCount{PerAccount: c.inUse, PerProfile: inProfile, Archived: c.archived}); err != nil || count != want {
				t.Errorf("%s, packed %v, in profile %s: counted %+v, %v", c.state, c.packed, profile, count, err)
			}
		}
	}
}

func TestArchivedEnvironmentsAreExactUnderConcurrency(t *testing.T) {
	for _, test := range []struct {
		name  string
		state core.EnvironmentState
		with  *core.Archive
	}{{"to archived", core.StateArchived, &packed}, {"to archiving", core.StateArchiving, nil}} {
		t.Run(test.name, func(t *testing.T) {
			s := openNew(t)
			q := core.EnvironmentQuota{PerAccount: 1000, PerProfile: 1000, Archived: 5}
			owner := func(i int) core.Owner { return []core.Owner{alice, alice2}[i%2] } // one account
			for i := range 50 {
				mustCreate(t, s, owner(i), fmt.Sprint("env_", i))
			}
			turn := func(i int) error {
				_, err := s.TurnEnvironment(context.Background(), owner(i), fmt.Sprint("env_", i), q, to(test.state, test.with))
				return err
			}
			turned := together(t, 50, core.CodeQuotaExceeded, turn)
			count, err := s.CountEnvironments(t.Context(), alice)
			if turned != 5 || count.Archived != 5 || err != nil {
				t.Errorf("turned %d, counted %+v, %v", turned, count, err)
			}
			mustCreate(t, s, alice, "env_50")
			wantQuota(t, turn(50), "archived_environments", 5, 5)
			mustCreate(t, s, bob, "bobs")
			if _, err := s.TurnEnvironment(t.Context(), bob, "bobs", q, to(test.state, test.with)); err != nil {
				t.Errorf("the other account: %v", err)
			}
		})
	}
}

func TestArchivingMakesRoomAndRestoringNeedsIt(t *testing.T) {
	s := openNew(t)
	q := core.EnvironmentQuota{PerAccount: 10, PerProfile: 10, Archived: 100}
	create := func(i int) error {
		_, _, err := s.CreateEnvironment(context.Background(), env(alice, fmt.Sprint("new_", i)), q, noUIDs, noKey)
		return err
	}
	for i := range 40 {
		mustCreate(t, s, alice, fmt.Sprint("env_", i))
		mustTurn(t, s, alice, fmt.Sprint("env_", i), core.StateArchived, &packed)
	}
	if made := together(t, 7, core.CodeQuotaExceeded, create); made != 7 {
		t.Fatalf("archived ones take the room of %d", 7-made)
	}
	restored := together(t, 40, core.CodeQuotaExceeded, func(i int) error {
		_, err := s.TurnEnvironment(context.Background(), alice, fmt.Sprint("env_", i), q, to(core.StateRestoring, &packed))
		return err
	})
	count, err := s.CountEnvironments(t.Context(), alice)
	if want := (core.EnvironmentCount{PerAccount: 10, PerProfile: 10, Archived: 40}); restored != 3 || count != want || err != nil {
		t.Errorf("restored %d, counted %+v, %v", restored, count, err)
	}
	wantQuota(t, create(7), "environments_per_profile", 10, 10)
	_, err = s.TurnEnvironment(t.Context(), alice, "new_0", core.EnvironmentQuota{Archived: 40}, to(core.StateArchiving, nil))
	wantQuota(t, err, "archived_environments", 40, 40)
	if e, err := s.Environment(t.Context(), alice, "new_0"); err != nil || e.State != core.StateActive {
		t.Errorf("what was refused is %s, %v", e.State, err)
	}
	// From both to either end there is always room, also at limits of nothing.
	for _, c := range []struct {
		state core.EnvironmentState
		with  *core.Archive
	}{{core.StateArchived, &packed}, {core.StateDeleting, &packed}} {
		if _, err := s.TurnEnvironment(t.Context(), alice, "env_0", core.EnvironmentQuota{}, to(c.state, c.with)); err != nil && !errors.Is(err, core.ErrNoRecord) {
			t.Errorf("to %s: %v", c.state, err)
		}
	}
}

// Only TurnEnvironment brings an environment under another quota.
func TestUpdateEnvironmentPassesNoQuota(t *testing.T) {
	s := openNew(t)
	ctx := t.Context()
	for i, from := range standings {
		for _, into := range standings {
			id := fmt.Sprint("env_", i, into.state, into.packed)
			var had, gets *core.Archive
			if from.packed {
				had = &packed
			}
			if into.packed {
				gets = &packed
			}
			mustCreate(t, s, alice, id)
			mustTurn(t, s, alice, id, from.state, had)
			_, err := s.UpdateEnvironment(ctx, alice, id, to(into.state, gets))
			joins := into.inUse > from.inUse || into.archived > from.archived
			if (err != nil) != joins {
				t.Errorf("from %s, %v to %s, %v: %v", from.state, from.packed, into.state, into.packed, err)
			}
			if e, readErr := s.Environment(ctx, alice, id); readErr != nil || joins == (e.State == into.state && (e.Archive != nil) == into.packed) {
				t.Errorf("from %s to %s it is %s, %v", from.state, into.state, e.State, readErr)
			}
		}
	}
}

// No sequence of creations, turns and deletions passes a limit, and nothing is refused
// for which there is room.
func TestQuotasHoldInAnyOrder(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	accounts := 0
	random.Check(t, func(t *rapid.T) {
		accounts++
		profiles := []core.Owner{{Account: fmt.Sprint("a", accounts), Profile: "p"}, {Account: fmt.Sprint("a", accounts), Profile: "q"}}
		q := core.EnvironmentQuota{
			PerAccount: rapid.IntRange(1, 4).Draw(t, "per account"),
			PerProfile: rapid.IntRange(1, 3).Draw(t, "per profile"), Archived: rapid.IntRange(1, 3).Draw(t, "archived"),
		}
		is := map[string]int{} // its place in standings
		of := map[string]core.Owner{}
		counted := func(o core.Owner, but string) (c core.EnvironmentCount) {
			for id, i := range is {
				if id == but {
					continue
				}
				c.PerAccount += standings[i].inUse
				c.Archived += standings[i].archived
				if of[id] == o {
					c.PerProfile += standings[i].inUse
				}
			}
			return c
		}
		room := func(o core.Owner, id string, from, into int) bool {
			c := counted(o, id)
			joins := into >= 0 && standings[into].inUse == 1 && (from < 0 || standings[from].inUse == 0)
			if joins && (c.PerAccount >= q.PerAccount || c.PerProfile >= q.PerProfile) {
				return false
			}
			joins = standings[into].archived == 1 && (from < 0 || standings[from].archived == 0)
			return !joins || c.Archived < q.Archived
		}
		check := func(what string, err error, allowed bool) {
			if allowed != (err == nil) || err != nil && core.AsError(err).Code != core.CodeQuotaExceeded {
				t.Fatalf("%s: %v, want allowed %v", what, err, allowed)
			}
		}
		archive := func(i int) *core.Archive {
			if standings[i].packed {
				return &packed
			}
			return nil
		}
		for step := range rapid.IntRange(1, 25).Draw(t, "steps") {
			o := rapid.SampledFrom(profiles).Draw(t, "owner")
			into := rapid.IntRange(0, len(standings)-1).Draw(t, "into")
			ids := make([]string, 0, len(is))
			for i := range step {
				if id := fmt.Sprintf("env_%d_%d", accounts, i); of[id] == o {
					ids = append(ids, id)
				}
			}
			if len(ids) == 0 || rapid.Bool().Draw(t, "create") {
				e := env(o, fmt.Sprintf("env_%d_%d", accounts, step))
				e.State, e.Archive = standings[into].state, archive(into)
				_, _, err := s.CreateEnvironment(ctx, e, q, noUIDs, noKey)
				check("create "+string(e.State), err, room(o, e.ID, -1, into))
				if err == nil {
					is[e.ID], of[e.ID] = into, o
				}
			} else if id := rapid.SampledFrom(ids).Draw(t, "id"); rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
				if err := s.DeleteEnvironment(ctx, o, id); err != nil {
					t.Fatal(err)
				}
				delete(is, id)
				delete(of, id)
			} else {
				_, err := s.TurnEnvironment(ctx, o, id, q, to(standings[into].state, archive(into)))
				check("turn to "+string(standings[into].state), err, room(o, id, is[id], into))
				if err == nil {
					is[id] = into
				}
			}
			for _, o := range profiles {
				c, err := s.CountEnvironments(ctx, o)
				if err != nil || c != counted(o, "") || c.PerAccount > q.PerAccount || c.PerProfile > q.PerProfile || c.Archived > q.Archived {
					t.Fatalf("counted %+v, %v, want %+v of %+v", c, err, counted(o, ""), q)
				}
			}
		}
	})
}

func TestNothingStartsWhereItIsNotActive(t *testing.T) {
	s := openNew(t)
	mustCreate(t, s, alice, "env_1")
	for _, c := range standings[1:] {
		with := &packed
		if !c.packed {
			with = nil
		}
		mustTurn(t, s, alice, "env_1", c.state, with)
		_, _, _, commandErr := s.CreateCommand(t.Context(), cmd(alice, "env_1", "cmd_1"), 10, noKey)
		_, _, _, shellErr := s.CreateShell(t.Context(), shell(alice, "env_1", "sh_1"), 10, noKey)
		for _, err := range []error{commandErr, shellErr} {
			e := core.AsError(err)
			if c.state == core.StateArchived {
				if e.Code != core.CodeEnvironmentArchived {
					t.Errorf("archived: %v", err)
				}
			} else if e.Code != core.CodeEnvironmentBusy || e.Facts["state"] != string(c.state) {
				t.Errorf("%s: %v %v", c.state, err, e.Facts)
			}
		}
	}
}
