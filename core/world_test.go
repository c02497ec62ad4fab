package core_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"envapi/core"
	"envapi/internal/outputlog"
	"envapi/internal/store"
)

// The limits of a world.
var testLimits = core.Limits{
	EnvironmentsPerAccount: 20,
	EnvironmentsPerProfile: 10, ArchivedEnvironments: 100, TerminalsPerAccount: 50,
	Shells:          3,
	RunningCommands: 5,
	Processes:       100,
	MemoryBytes:     1 << 30,
	DiskBytes:       100 << 20,
	Files:           1000,
	CPUPercent:      150,
	DefaultTimeout:  time.Minute,
	MaxTimeout:      time.Hour,
}

var (
	alice = core.Caller{Owner: core.Owner{Account: "alice", Profile: "default"}, Scopes: core.AllScopes}
	bob   = core.Caller{Owner: core.Owner{Account: "bob", Profile: "default"}, Scopes: core.AllScopes}
)

// world is a Service over a real store and real logs, and a sandbox and folders
// that the test controls.
type world struct {
	*core.Service
	t       reporter
	config  core.Config
	host    *fakeHost
	folders *fakeFolders
	store   *store.Store
}

// reporter is a testing.TB or a rapid.T.
type reporter interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// newWorld makes a world. Change may alter what the service is made of.
func newWorld(t testing.TB, change ...func(*world)) *world {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), emptyStore(t, dir))
	must(t, err)
	logs, err := outputlog.Open(filepath.Join(dir, "logs"), 64<<10)
	must(t, err)
	w := &world{t: t, host: &fakeHost{}, folders: newFolders(), store: db}
	w.config = core.Config{
		Store:      db,
		Workspaces: w.folders,
		Logs:       logs,
		Sandbox:    w.host,
		Limits:     testLimits,
		UIDs:       core.UIDRange{First: 200000, End: 200100},
		Log:        slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(w)
	}
	w.start()
	t.Cleanup(func() {
		must(t, w.Close())
		must(t, logs.Close())
		must(t, db.Close())
	})
	return w
}

// emptyFile is what is in the file of a store without records.
var emptyFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "envapi-core-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "envapi.db")
	db, err := store.Open(context.Background(), path)
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// emptyStore lays the file of a store into a folder: to bring its schema up takes
// longer than most tests, with -race.
func emptyStore(t testing.TB, dir string) (path string) {
	t.Helper()
	text, err := emptyFile()
	must(t, err)
	path = filepath.Join(dir, "envapi.db")
	must(t, os.WriteFile(path, text, 0o600))
	return path
}

// start makes a service of what there is, as after a restart.
func (w *world) start() {
	w.t.Helper()
	service, err := core.New(context.Background(), w.config)
	must(w.t, err)
	w.Service = service
}

// restart stops the service in good order and starts it again.
func (w *world) restart() {
	w.t.Helper()
	must(w.t, w.Close())
	w.start()
}

// create makes an environment of alice's.
func (w *world) create() core.Environment {
	w.t.Helper()
	env, err := w.CreateEnvironment(context.Background(), alice, core.CreateEnvironmentInput{})
	must(w.t, err)
	return env
}

// run runs a script of the fake sandbox.
func (w *world) run(env, script string, change ...func(*core.ExecInput)) core.Command {
	w.t.Helper()
	command, err := w.Exec(context.Background(), alice, execInput(env, script, change...))
	must(w.t, err)
	return command
}

func execInput(env, script string, change ...func(*core.ExecInput)) core.ExecInput {
	in := core.ExecInput{EnvironmentID: env, Command: &script}
	for _, c := range change {
		c(&in)
	}
	return in
}

// noWait is for commands that do not end by themselves.
func noWait(in *core.ExecInput) { in.WaitMS = ptr(int64(0)) }

// await waits for the end of a command of alice's.
func (w *world) await(id string) core.Command {
	w.t.Helper()
	command, err := w.GetCommand(context.Background(), alice, core.GetCommandInput{CommandID: id, WaitMS: ptr(int64(20_000))})
	must(w.t, err)
	if command.Status == core.CommandRunning {
		w.t.Fatalf("%s did not end", id)
	}
	return command
}

// process gives the n-th started process.
func (w *world) process(n int) *fakeProcess {
	w.t.Helper()
	eventually(w.t, "process started", func() bool { return len(w.host.processes()) > n })
	return w.host.processes()[n]
}

// fakeFolders keeps folders in memory.
type fakeFolders struct {
	core.Workspaces // what is not faked
	fakeArchives
	mu      sync.Mutex
	folders map[string]int // the uid of each
	resets  map[string]int // how often each was emptied
	fail    error          // what the next change fails with
	gate    chan struct{}  // Reset waits for it, where not nil
	keep    bool           // freed is not called
	usage   core.DiskUse   // of each, for Usage
	uses    map[string]core.DiskUse
	partial map[string]bool // Measure does not count all
	hidden  map[string]bool // there is what Measure cannot count
	twice   map[string]bool // the next Measure meets everything twice
	counts  map[string]int  // how often each was measured
	space   core.DiskSpace
	// See holdCounts.
	measuring, measureGate chan struct{}
	passing                int
}

func newFolders() *fakeFolders {
	f := &fakeFolders{
		folders: map[string]int{}, resets: map[string]int{},
		uses: map[string]core.DiskUse{}, partial: map[string]bool{}, hidden: map[string]bool{}, twice: map[string]bool{}, counts: map[string]int{},
		space: core.DiskSpace{Free: core.DiskUse{Bytes: 1 << 40, Files: 1 << 30}, Total: core.DiskUse{Bytes: 1 << 40, Files: 1 << 30}},
	}
	f.fakeArchives, f.usage = newArchives(), core.DiskUse{Bytes: 4096, Files: 1}
	return f
}

func (f *fakeFolders) Create(_ context.Context, id string, uid int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fail; err != nil {
		return err
	}
	if _, ok := f.folders[id]; !ok {
		f.folders[id] = uid
	}
	return nil
}

func (f *fakeFolders) Path(id string) string { return "/data/workspaces/" + id }

func (f *fakeFolders) Reset(ctx context.Context, id string, uid int) error {
	if err := f.before(ctx, "reset"); err != nil {
		return err
	}
	f.mu.Lock()
	gate := f.gate
	f.mu.Unlock()
	if gate != nil {
		<-gate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fail; err != nil {
		return err
	}
	f.folders[id] = uid
	delete(f.words, id)
	f.resets[id]++
	return nil
}

func (f *fakeFolders) Remove(ctx context.Context, id string, freed func()) error {
	if err := f.before(ctx, "remove"); err != nil {
		return err
	}
	f.mu.Lock()
	keep := f.keep
	delete(f.folders, id)
	delete(f.words, id)
	delete(f.archives, id)
	f.mu.Unlock()
	if !keep {
		freed()
	}
	return nil
}

func (f *fakeFolders) Usage(ctx context.Context, id, _ string) (int64, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.usage.Bytes, f.usage.Files, ctx.Err()
}

func (f *fakeFolders) Measure(_ context.Context, id, _ string) (core.DiskUse, error) {
	use, err := f.measure(id)
	f.mu.Lock()
	gate := f.measureGate
	if f.passing--; f.passing >= 0 {
		gate = nil
	} else if f.measuring != nil {
		close(f.measuring)
		f.measuring = nil
	}
	f.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return use, err
}

func (f *fakeFolders) measure(id string) (core.DiskUse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[id]++
	if f.twice[id] {
		delete(f.twice, id)
		return core.DiskUse{Bytes: 2 * f.uses[id].Bytes, Files: 2 * f.uses[id].Files}, nil
	}
	if f.partial[id] {
		return f.uses[id], core.ErrPartial
	}
	if f.hidden[id] {
		return f.uses[id], core.ErrHidden
	}
	return f.uses[id], nil
}

func (f *fakeFolders) Space() (core.DiskSpace, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.space, nil
}

func (f *fakeFolders) IDs() ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for id := range f.folders {
		ids = append(ids, id)
	}
	return ids, nil
}

func (f *fakeFolders) Close() error { return nil }

func (f *fakeFolders) has(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.folders[id]
	return ok
}

func (f *fakeFolders) failWith(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

func must(t reporter, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantCode fails unless err is an Error of the code. It gives it.
func wantCode(t reporter, err error, code core.Code) *core.Error {
	t.Helper()
	var e *core.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return e
}

// wantField is wantCode for one field that is invalid.
func wantField(t *testing.T, err error, field string) {
	t.Helper()
	if e := wantCode(t, err, core.CodeInvalidArgument); e.Facts["field"] != field {
		t.Fatalf("got field %v, want %s", e.Facts["field"], field)
	}
}

// eventually waits for a condition.
func eventually(t reporter, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// together calls do n times at once.
func together(n int, do func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	all.Wait()
}

func ptr[T any](v T) *T { return &v }

func long(n int) string { return strings.Repeat("x", n) }

var errNoFiles = errors.New("the fake folders hold no files")

// Files is for worlds over real folders.
func (f *fakeFolders) Files(string, int, string) (core.FileTree, error) {
	return nil, errNoFiles
}
