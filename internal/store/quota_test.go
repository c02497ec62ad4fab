package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"envapi/core"
)

// together runs do n times at the same moment and counts the successes. Every
// error must be a core.Error of the code given.
func together(t *testing.T, n int, refusal core.Code, do func(i int) error) int {
	t.Helper()
	var done atomic.Int64
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			if err := do(i); err == nil {
				done.Add(1)
			} else if core.AsError(err).Code != refusal {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	close(start)
	all.Wait()
	return int(done.Load())
}

func TestQuotasAreExactUnderConcurrency(t *testing.T) {
	ctx := context.Background()
	create := func(s *Store, o core.Owner, id string, q core.EnvironmentQuota) error {
		_, _, err := s.CreateEnvironment(ctx, env(o, id), q, noUIDs, noKey)
		return err
	}
	t.Run("environments per profile", func(t *testing.T) {
		s := openNew(t)
		mustCreate(t, s, bob, "bobs")
		q := core.EnvironmentQuota{PerAccount: 1000, PerProfile: 10}
		made := together(t, 200, core.CodeQuotaExceeded, func(i int) error { return create(s, alice, fmt.Sprint("e", i), q) })
		count, err := s.CountEnvironments(ctx, alice)
		account, profile := count.PerAccount, count.PerProfile
		if made != 10 || account != 10 || profile != 10 || err != nil {
			t.Errorf("made %d, counted %d and %d, %v", made, account, profile, err)
		}
		wantQuota(t, create(s, alice, "more", q), "environments_per_profile", 10, 10)
		if err := create(s, alice2, "e", q); err != nil {
			t.Errorf("the other profile: %v", err)
		}
	})
	t.Run("environments per account", func(t *testing.T) {
		s := openNew(t)
		mustCreate(t, s, bob, "bobs")
		q := core.EnvironmentQuota{PerAccount: 10, PerProfile: 1000}
		made := together(t, 200, core.CodeQuotaExceeded, func(i int) error {
			return create(s, core.Owner{Account: "alice", Profile: fmt.Sprint("p", i%7)}, fmt.Sprint("e", i), q)
		})
		count, err := s.CountEnvironments(ctx, alice)
		account := count.PerAccount
		if made != 10 || account != 10 || err != nil {
			t.Errorf("made %d, counted %d, %v", made, account, err)
		}
		wantQuota(t, create(s, alice, "more", q), "environments_per_account", 10, 10)
		if err := create(s, bob, "e", q); err != nil {
			t.Errorf("the other account: %v", err)
		}
	})
	t.Run("running commands", func(t *testing.T) {
		s := openNew(t)
		mustCreate(t, s, alice, "env_1", "env_2")
		run := func(environmentID, id string) error {
			_, _, _, err := s.CreateCommand(ctx, cmd(alice, environmentID, id), 10, noKey)
			return err
		}
		made := together(t, 200, core.CodeQuotaExceeded, func(i int) error { return run("env_1", fmt.Sprint("c", i)) })
		running, err := s.CountRunning(ctx, "env_1")
		if made != 10 || running != 10 || err != nil {
			t.Errorf("made %d, counted %d, %v", made, running, err)
		}
		wantQuota(t, run("env_1", "more"), "running_commands", 10, 10)
		if err := run("env_2", "c"); err != nil {
			t.Errorf("the other environment: %v", err)
		}
	})
	t.Run("while commands end", func(t *testing.T) {
		s := openNew(t)
		mustCreate(t, s, alice, "env_1")
		made := together(t, 200, core.CodeQuotaExceeded, func(i int) error {
			id := fmt.Sprint("c", i)
			if _, _, _, err := s.CreateCommand(ctx, cmd(alice, "env_1", id), 3, noKey); err != nil {
				return err
			}
			if running, err := s.CountRunning(ctx, "env_1"); err != nil || running > 3 {
				t.Errorf("%d run, %v", running, err)
			}
			return s.FinishCommand(ctx, id, exited(0))
		})
		if running, err := s.CountRunning(ctx, "env_1"); err != nil || running != 0 || made < 3 {
			t.Errorf("%d ran, %d run still, %v", made, running, err)
		}
	})
}

func TestAQuotaOfNothingAllowsNothing(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	_, _, err := s.CreateEnvironment(ctx, env(alice, "env_1"), core.EnvironmentQuota{}, noUIDs, noKey)
	wantQuota(t, err, "environments_per_profile", 0, 0)
	mustCreate(t, s, alice, "env_1", "env_2")
	_, _, err = s.CreateEnvironment(ctx, env(alice, "env_3"), core.EnvironmentQuota{PerAccount: 1, PerProfile: 3}, noUIDs, noKey)
	wantQuota(t, err, "environments_per_account", 1, 2)
}

func wantQuota(t *testing.T, err error, limit string, allowed, used int) {
	t.Helper()
	e := core.AsError(err)
	if err == nil || e.Code != core.CodeQuotaExceeded || e.Facts["limit"] != limit || e.Facts["allowed"] != allowed || e.Facts["used"] != used {
		t.Errorf("got %v %v, want %s with %d of %d", err, e.Facts, limit, used, allowed)
	}
}
