package core_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"envapi/core"
)

func forkOf(id string, change ...func(*core.ForkEnvironmentInput)) core.ForkEnvironmentInput {
	in := core.ForkEnvironmentInput{EnvironmentRef: refTo(id)}
	for _, c := range change {
		c(&in)
	}
	return in
}

func (w *world) fork(in core.ForkEnvironmentInput) core.Environment {
	w.t.Helper()
	env, err := w.ForkEnvironment(context.Background(), alice, in)
	must(w.t, err)
	return env
}

func TestForkCopiesTheFolder(t *testing.T) {
	w := newWorld(t, func(w *world) { w.host.needsUID = true })
	source, err := w.CreateEnvironment(t.Context(), alice, core.CreateEnvironmentInput{
		Name: "source", Limits: core.EnvironmentLimits{RunningCommands: ptr(2), Shells: ptr(1)}, IdleMS: ptr(int64(5_000_000)),
	})
	must(t, err)
	w.folders.put(source.ID, "word")
	running := w.run(source.ID, "wait", noWait)

	fork := w.fork(forkOf(source.ID, func(in *core.ForkEnvironmentInput) {
		in.Name, in.Labels, in.Limits.Shells = "fork", map[string]string{"a": "b"}, ptr(2)
	}))
	if fork.ID == source.ID || fork.Name != "fork" || fork.Labels["a"] != "b" || fork.State != core.StateActive {
		t.Fatalf("got %+v", fork)
	}
	if *fork.Usage.RunningCommands.Allowed != 2 || *fork.Usage.Shells.Allowed != 2 || fork.IdleMS == nil || *fork.IdleMS != *source.IdleMS {
		t.Fatalf("the limits are not those of the source, and the ones given: %+v", fork)
	}
	w.wantWord(fork.ID, "word")
	w.wantWord(source.ID, "word")
	if c, err := w.GetCommand(t.Context(), alice, core.GetCommandInput{CommandID: running.ID}); err != nil || c.Status != core.CommandRunning {
		t.Fatalf("the source was disturbed: %v %v", c.Status, err)
	}
	w.wantWhole()
	w.run(fork.ID, "exit 0")
}

func TestForkRefuses(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Limits.EnvironmentsPerProfile = 2 })
	env := w.create()
	_, err := w.ForkEnvironment(t.Context(), bob, forkOf(env.ID))
	wantCode(t, err, core.CodeNotFound)
	_, err = w.ForkEnvironment(t.Context(), alice, forkOf(env.ID, func(in *core.ForkEnvironmentInput) { in.Name = "a\nb" }))
	wantField(t, err, "name")
	_, err = w.ForkEnvironment(t.Context(), alice, forkOf(env.ID, func(in *core.ForkEnvironmentInput) { in.Limits.Shells = ptr(1000) }))
	wantField(t, err, "limits.shells")
	w.create()
	_, err = w.ForkEnvironment(t.Context(), alice, forkOf(env.ID))
	if e := wantCode(t, err, core.CodeQuotaExceeded); e.Facts["limit"] != "environments_per_profile" {
		t.Fatalf("got %v", e.Facts)
	}
	w.wantWhole()
}

func TestForkOnceUnderAKey(t *testing.T) {
	w := newWorld(t)
	env := w.archived("word") // it is restored, once
	in := forkOf(env, func(in *core.ForkEnvironmentInput) { in.IdempotencyKey = "k" })
	ids := make([]string, 20)
	together(20, func(i int) {
		fork, err := w.ForkEnvironment(context.Background(), alice, in)
		if err != nil || fork.State != core.StateActive {
			t.Errorf("call %d: %v %v", i, fork.State, err)
		}
		ids[i] = fork.ID
	})
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("several: %v", ids)
		}
	}
	if n := w.folders.unpacked(env); n != 1 {
		t.Fatalf("unpacked %d times", n)
	}
	w.wantWord(ids[0], "word")
	w.wantWhole()
	w.restart()
	if again := w.fork(in); again.ID != ids[0] {
		t.Fatalf("after a restart another one: %s", again.ID)
	}
	_, err := w.DeleteEnvironment(t.Context(), alice, refTo(env))
	must(t, err)
	if again := w.fork(in); again.ID != ids[0] {
		t.Fatalf("without the source another one: %s", again.ID)
	}
	in.Name = "b"
	_, err = w.ForkEnvironment(t.Context(), alice, in)
	wantCode(t, err, core.CodeIdempotencyMismatch)
}

// Who asks with the key of a fork that is being made and fails is not told of that.
func TestAForkThatFailedIsMadeByWhoWaitedForIt(t *testing.T) {
	w := newWorld(t)
	in := forkOf(w.create().ID, func(in *core.ForkEnvironmentInput) { in.IdempotencyKey = "k" })
	var copies, failed atomic.Int32
	w.folders.on("copy", func(context.Context) error {
		if copies.Add(1) == 1 {
			return errDisk
		}
		return nil
	})
	together(10, func(int) {
		if _, err := w.ForkEnvironment(context.Background(), alice, in); errors.Is(err, errDisk) {
			failed.Add(1)
		} else if err != nil {
			t.Error(err)
		}
	})
	if n := failed.Load(); n != 1 || copies.Load() != 2 {
		t.Fatalf("%d failed, and %d copies were made", n, copies.Load())
	}
	w.wantWhole()
}

func TestAForkThatFailsWasNeverMade(t *testing.T) {
	w := newWorld(t, func(w *world) { w.host.needsUID = true })
	env := w.create()
	in := forkOf(env.ID, func(in *core.ForkEnvironmentInput) { in.IdempotencyKey = "k" })
	w.folders.on("copy", func(context.Context) error { return errDisk })
	if _, err := w.ForkEnvironment(t.Context(), alice, in); !errors.Is(err, errDisk) {
		t.Fatalf("got %v", err)
	}
	if n := len(w.environments()); n != 1 {
		t.Fatalf("%d are listed", n)
	}
	w.wantWhole()
	w.folders.on("copy", nil)
	w.fork(in) // the same key is as good as new
}

func TestAForkOfWhatIsResetMeanwhileIsNone(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.folders.on("copy", func(ctx context.Context) error {
		_, err := w.ResetEnvironment(ctx, alice, refTo(env.ID))
		return err
	})
	_, err := w.ForkEnvironment(t.Context(), alice, forkOf(env.ID))
	wantCode(t, err, core.CodeEnvironmentBusy)
	if n := len(w.environments()); n != 1 {
		t.Fatalf("%d are listed", n)
	}
	w.wantWhole()
}

func TestAnEnvironmentThatIsForkedIsNotIdle(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	var done bool
	w.folders.on("copy", func(context.Context) (err error) {
		done, err = w.idle(env.ID)
		return err
	})
	w.fork(forkOf(env.ID))
	if done {
		t.Fatal("it was archived while it was read")
	}
}

func TestAForkMustFitItsLimits(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.folders.usage = core.DiskUse{Bytes: 2 << 20, Files: 20}
	_, err := w.ForkEnvironment(t.Context(), alice, forkOf(env.ID, func(in *core.ForkEnvironmentInput) { in.Limits.DiskBytes = ptr(int64(1 << 20)) }))
	if e := wantCode(t, err, core.CodeQuotaExceeded); e.Facts["limit"] != "disk_bytes" {
		t.Fatalf("got %v", e.Facts)
	}
	_, err = w.ForkEnvironment(t.Context(), alice, forkOf(env.ID, func(in *core.ForkEnvironmentInput) { in.Limits.Files = ptr(int64(16)) }))
	if e := wantCode(t, err, core.CodeQuotaExceeded); e.Facts["limit"] != "files" {
		t.Fatalf("got %v", e.Facts)
	}
	w.fork(forkOf(env.ID, func(in *core.ForkEnvironmentInput) { in.Limits.Files = ptr(int64(20)) }))
}

// TestAForkIsBoundedWhileItIsMade: what the source held before it says nothing, since
// programs write to it meanwhile.
func TestAForkIsBoundedWhileItIsMade(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	w.fork(forkOf(env.ID))
	if most := (core.DiskUse{Bytes: w.config.Limits.DiskBytes, Files: w.config.Limits.Files}); w.folders.most != most {
		t.Fatalf("got %+v, want %+v", w.folders.most, most)
	}
	w.fork(forkOf(env.ID, func(in *core.ForkEnvironmentInput) {
		in.Limits.DiskBytes, in.Limits.Files = ptr(int64(2<<20)), ptr(int64(99))
	}))
	if most := (core.DiskUse{Bytes: 2 << 20, Files: 99}); w.folders.most != most {
		t.Fatalf("got %+v, want %+v", w.folders.most, most)
	}
}

func TestFiveForksOfAnAccountAreOneTooMany(t *testing.T) {
	w := newWorld(t)
	env := w.create()
	arrived, held := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	t.Cleanup(release) // before the world ends, which waits for them
	w.folders.on("copy", func(context.Context) error {
		arrived <- struct{}{}
		<-held
		return nil
	})
	forked := make(chan error, 4)
	for range 4 {
		go func() {
			_, err := w.ForkEnvironment(context.Background(), alice, forkOf(env.ID))
			forked <- err
		}()
		<-arrived
	}
	w.folders.on("copy", nil)
	_, err := w.ForkEnvironment(t.Context(), alice, forkOf(env.ID))
	if e := wantCode(t, err, core.CodeRateLimited); e.Facts["retry_after_ms"] == nil {
		t.Errorf("it does not say when to try again: %v", e.Facts)
	}
	if n := len(w.environments()); n != 5 {
		t.Errorf("what was refused has left something: %d are listed", n)
	}
	release()
	for range 4 {
		must(t, <-forked)
	}
	w.fork(forkOf(env.ID))
}
