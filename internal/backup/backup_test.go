package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/outputlog"
	"envapi/internal/require"
	"envapi/internal/store"
	"envapi/internal/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var (
	owner  = core.Owner{Account: "alice", Profile: "default"}
	plenty = core.EnvironmentQuota{PerAccount: 1000, PerProfile: 1000, Archived: 1000}
)

// deployment is a data folder, as its service has it.
type deployment struct {
	*store.Store
	*workspace.Workspaces
	dir  string
	uids core.UIDRange
}

func deploy(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{dir: filepath.Join(t.TempDir(), "data")}
	if os.Geteuid() == 0 {
		d.uids = core.UIDRange{First: 2_000_900_000, End: 2_000_900_100}
	}
	must(t, os.Mkdir(d.dir, 0o700))
	var err error
	d.Store, err = store.Open(t.Context(), filepath.Join(d.dir, store.FileName))
	must(t, err)
	t.Cleanup(func() { must(t, d.Store.Close()) })
	d.Workspaces, err = workspace.Open(d.dir)
	must(t, err)
	t.Cleanup(func() { must(t, d.Workspaces.Close()) })
	must(t, os.Mkdir(filepath.Join(d.dir, outputlog.Folder), 0o700))
	return d
}

// request is one for a backup beside the data folder.
func (d *deployment) request() Request {
	return Request{Data: d.dir, To: filepath.Join(filepath.Dir(d.dir), "backup")}
}

// id gives an id that tells what it is of.
func id(n int) string { return "env_" + strings.Repeat(string(rune('a'+n)), 26) }

// environment makes one, active, with a file in it, and a command with output, both made
// under keys.
func (d *deployment) environment(t *testing.T, n int) core.EnvironmentRecord {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Millisecond)
	env, _, err := d.CreateEnvironment(t.Context(), core.EnvironmentRecord{
		ID: id(n), Owner: owner, State: core.StateActive, CreatedAt: now, LastActivityAt: now,
	}, plenty, d.uids, core.Idempotency{Operation: "create_environment", Key: id(n), Fingerprint: "x"})
	must(t, err)
	must(t, d.Create(t.Context(), env.ID, env.HostUID))
	path := filepath.Join(d.Path(env.ID), "file")
	must(t, os.WriteFile(path, []byte("content"), 0o600))
	if env.HostUID != 0 {
		must(t, os.Chown(path, env.HostUID, env.HostUID))
	}
	return env
}

// turn brings an environment into a state.
func (d *deployment) turn(t *testing.T, env core.EnvironmentRecord, state core.EnvironmentState, archive *core.Archive) {
	t.Helper()
	_, err := d.TurnEnvironment(t.Context(), owner, env.ID, plenty, func(e *core.EnvironmentRecord) error {
		e.State, e.Archive = state, archive
		return nil
	})
	must(t, err)
}

// packed makes the archive.
func (d *deployment) packed(t *testing.T, env core.EnvironmentRecord) *core.Archive {
	t.Helper()
	a, err := d.Pack(t.Context(), env.ID, env.HostUID)
	must(t, err)
	a.At = a.At.Truncate(time.Millisecond)
	return &a
}

// vacate takes the folder away, as the service does.
func (d *deployment) vacate(t *testing.T, env core.EnvironmentRecord) {
	t.Helper()
	must(t, d.Vacate(t.Context(), env.ID))
}

// kept is what a backup has of an environment: its state, or "" where it has no record,
// and which names are there.
type kept struct {
	state           core.EnvironmentState
	folder, archive bool
	files           string // in the folder
}

var (
	nothing  = kept{}
	asActive = kept{state: core.StateActive, folder: true, files: "file"}
	asEmpty  = kept{state: core.StateActive, folder: true}
	asPacked = kept{state: core.StateArchived, archive: true}
)

// look says what a backup has of an environment, whose record must fit its archive.
func look(t *testing.T, dir, id string) kept {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(dir, store.FileName))
	must(t, err)
	defer s.Close()
	var k kept
	entries, err := os.ReadDir(filepath.Join(dir, workspace.LiveFolder, id))
	k.folder = err == nil
	for _, e := range entries {
		k.files += e.Name()
	}
	info, err := os.Stat(filepath.Join(dir, workspace.ArchiveFolder, workspace.ArchiveName(id)))
	k.archive = err == nil
	env, err := s.Environment(t.Context(), owner, id)
	if errors.Is(err, core.ErrNoRecord) {
		return k
	}
	must(t, err)
	k.state = env.State
	if k.archive && env.State == core.StateArchived && env.Archive.Bytes != info.Size() {
		t.Errorf("the record of %s is of another archive: %+v", id, env.Archive)
	}
	if env.State == core.StateActive && env.Archive != nil {
		t.Errorf("%s is active and has an archive", id)
	}
	return k
}

// TestEachStateBecomesOneThatLasts: whatever the service is in the middle of.
func TestEachStateBecomesOneThatLasts(t *testing.T) {
	d := deploy(t)
	cases := []struct {
		name string
		make func(env core.EnvironmentRecord)
		want kept
	}{
		{"active", func(core.EnvironmentRecord) {}, asActive},
		{"archiving", func(env core.EnvironmentRecord) { d.turn(t, env, core.StateArchiving, nil) }, asActive},
		{"archiving, packed", func(env core.EnvironmentRecord) {
			d.packed(t, env)
			d.turn(t, env, core.StateArchiving, nil)
		}, asActive},
		{"archived, with its folder", func(env core.EnvironmentRecord) { d.turn(t, env, core.StateArchived, d.packed(t, env)) }, asActive},
		{"archived", func(env core.EnvironmentRecord) {
			d.turn(t, env, core.StateArchived, d.packed(t, env))
			d.vacate(t, env)
		}, asPacked},
		{"restoring", func(env core.EnvironmentRecord) {
			d.turn(t, env, core.StateRestoring, d.packed(t, env))
			d.vacate(t, env)
		}, asPacked},
		{"restoring, laid out", func(env core.EnvironmentRecord) { d.turn(t, env, core.StateRestoring, d.packed(t, env)) }, asActive},
		{"a fork in the making", func(env core.EnvironmentRecord) { d.turn(t, env, core.StateRestoring, nil) }, nothing},
		{"resetting", func(env core.EnvironmentRecord) { d.turn(t, env, core.StateResetting, nil) }, asActive},
		{"resetting, without a folder", func(env core.EnvironmentRecord) {
			d.turn(t, env, core.StateResetting, nil)
			d.vacate(t, env)
		}, asEmpty},
		{"deleting", func(env core.EnvironmentRecord) { d.turn(t, env, core.StateDeleting, nil) }, nothing},
		{"archived, without its archive", func(env core.EnvironmentRecord) {
			d.turn(t, env, core.StateArchived, d.packed(t, env))
			d.vacate(t, env)
			must(t, d.DropArchive(t.Context(), env.ID))
		}, kept{state: core.StateArchived}},
	}
	for n, c := range cases {
		c.make(d.environment(t, n))
	}
	q := d.request()
	r, err := Make(t.Context(), q)
	must(t, err)
	if r.Environments != 10 || r.Archived != 2 || len(r.Left) != 1 || r.Left[0] != (Left{id(len(cases) - 1), errMissing.Error()}) {
		t.Errorf("it holds %+v", r)
	}
	for n, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := look(t, q.To, id(n)); got != c.want {
				t.Errorf("it has %+v, and not %+v", got, c.want)
			}
			key := core.Idempotency{Operation: "create_environment", Key: id(n), Fingerprint: "x"}
			s, err := store.Open(t.Context(), filepath.Join(q.To, store.FileName))
			must(t, err)
			defer s.Close()
			made, err := s.Made(t.Context(), owner, key)
			must(t, err)
			if stays := c.name != "a fork in the making"; (made != "") != stays {
				t.Errorf("the key is of %q", made)
			}
			left, err := s.UnreleasedUIDs(t.Context())
			must(t, err)
			if len(left) > 0 {
				t.Errorf("uids are left of %v", left)
			}
		})
	}
}

// meddler is a context that does something once, at the first look at it after a time has
// come.
type meddler struct {
	context.Context //nolint:containedctx // it is one
	when            func() bool
	do              func()
	mu              sync.Mutex // package sql looks at it too
	done            bool
}

func (m *meddler) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.done && m.when() {
		m.done = true
		m.do()
	}
	return m.Context.Err()
}

// TestWhatChangesWhileItIsCopied is there as it was or as it is then, and whole.
func TestWhatChangesWhileItIsCopied(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, d *deployment, env core.EnvironmentRecord)
		want kept
	}{
		"archived": {func(t *testing.T, d *deployment, env core.EnvironmentRecord) {
			d.turn(t, env, core.StateArchived, d.packed(t, env))
			d.vacate(t, env)
		}, asPacked},
		"reset": {func(t *testing.T, d *deployment, env core.EnvironmentRecord) {
			must(t, d.Reset(t.Context(), env.ID, env.HostUID))
		}, asEmpty},
		"deleted": {func(t *testing.T, d *deployment, env core.EnvironmentRecord) {
			must(t, d.Workspaces.Remove(t.Context(), env.ID, func() {}))
			must(t, d.DeleteEnvironment(t.Context(), owner, env.ID))
		}, nothing},
		"about to be deleted": {func(t *testing.T, d *deployment, env core.EnvironmentRecord) {
			d.turn(t, env, core.StateDeleting, nil)
		}, nothing},
		"archived and restored": {func(t *testing.T, d *deployment, env core.EnvironmentRecord) {
			d.packed(t, env)
			d.vacate(t, env)
			must(t, d.Unpack(t.Context(), env.ID, env.HostUID))
			must(t, d.DropArchive(t.Context(), env.ID))
		}, asActive},
	} {
		t.Run(name, func(t *testing.T) {
			d := deploy(t)
			env := d.environment(t, 0)
			inTheMiddle := func(p *partial) bool {
				_, err := os.Lstat(filepath.Join(p.path, makingName, "tree", "file"))
				return err == nil
			}
			if got := d.meddled(t, inTheMiddle, func() { c.do(t, d, env) }); got != c.want {
				t.Errorf("it has %+v, and not %+v", got, c.want)
			}
		})
	}
	t.Run("restored", func(t *testing.T) {
		d := deploy(t)
		env := d.environment(t, 0)
		d.turn(t, env, core.StateArchived, d.packed(t, env))
		d.vacate(t, env)
		opened := func(p *partial) bool {
			_, err := os.Lstat(filepath.Join(p.path, workspace.ArchiveFolder, workspace.ArchiveName(env.ID)))
			return err == nil
		}
		got := d.meddled(t, opened, func() {
			must(t, d.Unpack(t.Context(), env.ID, env.HostUID))
			d.turn(t, env, core.StateActive, nil)
			must(t, d.DropArchive(t.Context(), env.ID))
		})
		if got != asPacked {
			t.Errorf("it has %+v", got)
		}
	})
}

// meddled makes a backup of one environment, does something in the middle of it, and says
// what it has. Nothing may be left over.
func (d *deployment) meddled(t *testing.T, when func(*partial) bool, do func()) kept {
	t.Helper()
	q := d.request()
	p, err := begin(t.Context(), q.To)
	must(t, err)
	defer p.close()
	records, err := store.NewBackup(t.Context(), filepath.Join(d.dir, store.FileName), filepath.Join(p.path, store.FileName))
	must(t, err)
	m, err := newMaker(&q, p, records, &space{dir: p.dir})
	must(t, err)
	ctx := &meddler{Context: t.Context(), when: func() bool { return when(p) }, do: do}
	must(t, m.copyAll(ctx))
	m.close()
	if !ctx.done {
		t.Fatal("nothing was done in the middle")
	}
	if len(m.result.Left) > 0 {
		t.Errorf("what was not copied: %+v", m.result.Left)
	}
	must(t, records.Finish(t.Context()))
	must(t, records.Close())
	must(t, p.finish())
	entries, err := os.ReadDir(q.To)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{workspace.ArchiveFolder, store.FileName, outputlog.Folder, workspace.LiveFolder}) {
		t.Errorf("it has %v", names)
	}
	return look(t, q.To, id(0))
}

// TestABackupLeavesRoomOnTheDiskOfTheService: a backup that runs into what must stay free ends, and
// leaves nothing.
func TestABackupLeavesRoomOnTheDiskOfTheService(t *testing.T) {
	d := deploy(t)
	d.environment(t, 0)
	q := d.request()
	q.Limits.FreeDiskBytes = 1 << 60
	_, err := Make(t.Context(), q)
	if e := core.AsError(err); err == nil || e.Code != core.CodeDiskFull {
		t.Errorf("got %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(q.To))
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("it left %v", entries)
	}
}

// TestOneFileTooMuchIsNoFullDisk: a file system says the same of both.
func TestOneFileTooMuchIsNoFullDisk(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	must(t, err)
	defer dir.Close()
	s := &space{dir: dir}
	for _, c := range []struct {
		err  error
		full bool
	}{{unix.ENOSPC, false}, {unix.EDQUOT, true}, {unix.EIO, false}} {
		var e *core.Error
		err := s.judge(fmt.Errorf("set an attribute: %w", c.err))
		if full := errors.As(err, &e) && e.Code == core.CodeDiskFull; full != c.full || err == nil {
			t.Errorf("%v is %v", c.err, err)
		}
	}
}

// TestABackupLeavesFilesToTheService, where the disk counts them in advance.
func TestABackupLeavesFilesToTheService(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	must(t, err)
	defer dir.Close()
	s := &space{dir: dir}
	_, total, err := s.look()
	must(t, err)
	if total.Files == 0 {
		require.Feature(t, "inodes", "the disk of this test does not count files in advance")
	}
	s.least.Files = total.Files
	var e *core.Error
	if err := s.fits(core.DiskUse{Files: 1}); !errors.As(err, &e) || e.Code != core.CodeDiskFull {
		t.Errorf("got %v", err)
	}
}

// TestWhatIsNotFinishedHasItsMark: a kill while the disk is waited for leaves
// what the next backup finds.
func TestWhatIsNotFinishedHasItsMark(t *testing.T) {
	parent := t.TempDir()
	p, err := begin(t.Context(), filepath.Join(parent, "backup"))
	must(t, err)
	must(t, p.dir.Close()) // so nothing can be written to disk
	if err := p.finish(); err == nil {
		t.Error("it was finished without the disk")
	}
	if _, err := os.Lstat(filepath.Join(p.path, markName)); err != nil {
		t.Error(err)
	}
}

// TestTheGuardEndsABackup when the room goes while it copies.
func TestTheGuardEndsABackup(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	must(t, err)
	defer dir.Close()
	s := &space{dir: dir, least: core.DiskUse{Bytes: 1 << 60}}
	ctx, stop := s.guard(t.Context())
	defer stop()
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
	if e := core.AsError(context.Cause(ctx)); e.Code != core.CodeDiskFull {
		t.Errorf("got %v", context.Cause(ctx))
	}
}
