package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/require"
)

// grow is a transaction that cannot do without new pages.
func grow(ctx context.Context, tx *statements) error {
	_, err := tx.exec(ctx, `UPDATE deployment SET cursor_key = randomblob(100000)`)
	return err
}

// noPages makes a database that never gets another page.
func noPages(t *testing.T) *Store {
	t.Helper()
	s := openNew(t)
	mustCreate(t, s, alice, "env_1")
	s.closing() // it is not refilled meanwhile
	<-s.kept
	for _, w := range []*writer{s.quick, s.durable} {
		var pages int
		if err := w.row(t.Context(), `PRAGMA max_page_count = 1`).Scan(&pages); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (r *reserve) left(t *testing.T) int64 {
	t.Helper()
	size, err := r.size()
	if err != nil {
		t.Fatal(err)
	}
	return size
}

func TestWhatTakesOfTheReserveLeavesItsShare(t *testing.T) {
	ctx := context.Background()
	state := func(from, to core.EnvironmentState) func(*Store) error {
		return func(s *Store) error {
			_, err := s.UpdateEnvironment(ctx, alice, "env_1", func(e *core.EnvironmentRecord) error { e.State = from; return nil })
			if err != nil {
				return err
			}
			_, err = s.UpdateEnvironment(ctx, alice, "env_1", func(e *core.EnvironmentRecord) error {
				e.State, e.Name = to, fmt.Sprintf("%0100000d", 0)
				return nil
			})
			return err
		}
	}
	for _, c := range []struct {
		name string
		do   func(s *Store) error
		left int64
	}{
		{"what is new", func(s *Store) error { return s.write(ctx, s.durable, "test", grow) }, leaveAll},
		{"the end of something", func(s *Store) error { return s.writeEnd(ctx, s.quick, "test", grow) }, leaveHalf},
		{"what frees", func(s *Store) error { return s.writeFreeing(ctx, s.quick, "test", grow) }, leaveNone},
		{"an environment's new name", state(core.StateActive, core.StateActive), leaveAll},
		{"to a passing state", state(core.StateActive, core.StateResetting), leaveNone},
		{"back from one", state(core.StateResetting, core.StateActive), leaveNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := noPages(t)
			if err := c.do(s); err == nil || core.AsError(err).Code != core.CodeDiskFull {
				t.Fatalf("the error is %v", err)
			}
			if left := s.reserve.left(t); left != c.left {
				t.Errorf("it leaves %d of the reserve, want %d", left, c.left)
			}
		})
	}
}

func TestTheReserveIsMadeAgain(t *testing.T) {
	s := openNew(t)
	for range 2 {
		if !s.reserve.give(leaveNone) {
			t.Fatal("it gives nothing")
		}
		eventually(t, "it is whole again", func() bool { return s.reserve.left(t) == reserveBytes })
	}
}

// fullDisk mounts a small file system and gives a store on it and what fills
// the rest.
func fullDisk(t *testing.T) (s *Store, fill func()) {
	t.Helper()
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", 4*reserveBytes))
	if errors.Is(err, unix.EPERM) {
		require.Feature(t, "mounts", "this process may not mount: "+err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	s = openAt(t, filepath.Join(dir, "envapi.db"))
	return s, func() {
		file, err := os.OpenFile(filepath.Join(dir, "big"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for block := make([]byte, 4096); err == nil; {
			_, err = file.Write(block)
		}
	}
}

func TestD12OnAFullDiskCommandsEndAndEnvironmentsGo(t *testing.T) {
	s, fill := fullDisk(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1")
	mustRun(t, s, alice, "env_1", "cmd_1")
	n := 0
	for err := error(nil); err == nil; n++ {
		fill()
		_, _, _, err = s.CreateCommand(ctx, cmd(alice, "env_1", fmt.Sprint("more_", n)), 1<<20, noKey)
	}
	if left := s.reserve.left(t); left != reserveBytes {
		t.Errorf("what is new has taken of the reserve: %d are left", left)
	}
	if err := s.FinishCommand(ctx, "cmd_1", exited(0)); err != nil {
		t.Error(err)
	}
	fill()
	if err := s.flush(ctx); err != nil {
		t.Error(err)
	}
	fill()
	_, err := s.UpdateEnvironment(ctx, alice, "env_1", func(e *core.EnvironmentRecord) error { e.State = core.StateDeleting; return nil })
	if err != nil {
		t.Error(err)
	}
	fill()
	if err := s.DeleteEnvironment(ctx, alice, "env_1"); err != nil {
		t.Error(err)
	}
}
