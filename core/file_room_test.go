package core_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"envapi/core"
	"envapi/internal/require"
)

func (w *world) limitDisk(env string, bytes int64) {
	w.t.Helper()
	_, err := w.UpdateEnvironment(context.Background(), alice, core.UpdateEnvironmentInput{
		EnvironmentRef: core.EnvironmentRef{EnvironmentID: env}, Limits: &core.EnvironmentLimits{DiskBytes: &bytes},
	})
	must(w.t, err)
}

func (w *world) upload(env, path string, size int64) error {
	_, err := w.UploadFile(context.Background(), alice, core.UploadFileInput{FileRef: at(env, path)}, io.LimitReader(rand0{}, size), size)
	return err
}

// Who was told that nothing fits, and then made room, is not told so again because of
// what was counted before.
func TestWhatWasMadeFreeIsFreeAtOnce(t *testing.T) {
	const whole, most = 5 << 20, 8 << 20
	for name, free := range map[string]func(w *world, env string) error{
		"deleted": func(w *world, env string) error {
			_, err := w.DeleteFile(context.Background(), alice, core.DeleteFileInput{FileRef: at(env, "a")})
			return err
		},
		"replaced": func(w *world, env string) error { return w.upload(env, "a", 1) },
		"patched": func(w *world, env string) error {
			w.write(env, "b", "1\n")
			_, err := w.CopyFile(context.Background(), alice, core.CopyFileInput{EnvironmentID: env, Source: "b", Destination: "a", Overwrite: true})
			return err
		},
	} {
		for _, running := range []bool{false, name == "deleted"} {
			w, env, _ := newFiles(t)
			w.limitDisk(env, most)
			must(t, w.upload(env, "a", whole))
			if running {
				w.run(env, "wait", noWait)
				eventually(t, "counted by the watch", func() bool { return w.Known(env).Bytes >= whole })
			}
			wantCode(t, w.upload(env, "c", whole), core.CodeQuotaExceeded)
			must(t, free(w, env))
			if err := w.upload(env, "c", whole); err != nil {
				t.Errorf("%s, running %v: %v", name, running, err)
			}
		}
	}
}

func tarOf(t *testing.T, name, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	to := tar.NewWriter(&out)
	must(t, to.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}))
	_, err := io.WriteString(to, content)
	must(t, err)
	must(t, to.Close())
	return out.Bytes()
}

// An import takes all the room there is while it comes; a write waits for its end and
// is not refused.
func TestAWriteWaitsForWhoHasTakenAllTheRoom(t *testing.T) {
	w, env, _ := newFiles(t)
	in, out := io.Pipe()
	imported := make(chan error, 1)
	go func() {
		_, err := w.ImportFiles(context.Background(), alice, core.ImportFilesInput{DirectoryRef: core.DirectoryRef{EnvironmentID: env}}, in, -1)
		imported <- err
	}()
	archive := tarOf(t, "x", "1")
	_, err := out.Write(archive[:100]) // it has all the room when it reads
	must(t, err)
	wrote := make(chan error, 1)
	go func() {
		_, err := w.WriteFile(context.Background(), alice, core.WriteFileInput{FileRef: at(env, "y"), Content: "2"})
		wrote <- err
	}()
	eventually(t, "the write waits", func() bool {
		stacks := make([]byte, 1<<20)
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("core.(*room).attempt("))
	})
	_, err = out.Write(archive[100:])
	must(t, err)
	must(t, out.Close())
	must(t, <-imported)
	must(t, <-wrote)
}

// watchedStore says whether it is asked by a thread that is somebody else for files.
type watchedStore struct {
	core.Store
	foreign func(uid int)
}

func (s watchedStore) Environment(ctx context.Context, o core.Owner, id string) (core.EnvironmentRecord, error) {
	const ask = ^uintptr(0) // changes nothing
	if uid, _, _ := syscall.RawSyscall(syscall.SYS_SETFSUID, ask, 0, 0); int(uid) != syscall.Geteuid() {
		s.foreign(int(uid))
	}
	return s.Store.Environment(ctx, o, id)
}

// What is read from an archive is read as the environment's user; the store is not.
func TestTheStoreIsNeverAskedAsTheEnvironmentsUser(t *testing.T) {
	if syscall.Geteuid() != 0 {
		require.Feature(t, "root", "only root can touch files as another user")
	}
	w, env, _ := newFilesOf(t, core.UIDRange{First: 200000, End: 200100}, func(c *core.Config) {
		c.Store = watchedStore{c.Store, func(uid int) { t.Errorf("it is asked as %d", uid) }}
	})
	for _, body := range []string{string(tarOf(t, "x", "1")), strings.Repeat("no archive", 1000)} {
		_, err := w.ImportFiles(t.Context(), alice, core.ImportFilesInput{DirectoryRef: core.DirectoryRef{EnvironmentID: env}}, strings.NewReader(body), -1)
		if err != nil {
			wantCode(t, err, core.CodeInvalidArgument)
		}
	}
	w.write(env, "y", "2")
	must(t, w.upload(env, "z", 1<<20))
	_, err := w.CopyFile(t.Context(), alice, core.CopyFileInput{EnvironmentID: env, Source: "z", Destination: "zz"})
	must(t, err)
}

// A client that reads nothing holds descriptors: there are so many of an account.
func TestExportsOfAnAccountAreBounded(t *testing.T) {
	w, env, _ := newFiles(t)
	w.write(env, "d/x", strings.Repeat("x", 1<<20))
	in := core.ExportFilesInput{DirectoryRef: core.DirectoryRef{EnvironmentID: env}, Compression: "none"}
	stuck := &frozen{begun: make(chan struct{}, 100), gate: make(chan struct{})}
	var all sync.WaitGroup
	for range core.MaxExports {
		all.Go(func() {
			if _, err := w.ExportFiles(context.Background(), alice, in, stuck); err != nil {
				t.Error(err)
			}
		})
		<-stuck.begun
	}
	_, err := w.ExportFiles(t.Context(), alice, in, io.Discard)
	wantCode(t, err, core.CodeRateLimited)
	close(stuck.gate)
	all.Wait()
	_, err = w.ExportFiles(t.Context(), alice, in, io.Discard)
	must(t, err)
}

// frozen takes nothing until its gate is opened.
type frozen struct {
	begun chan struct{}
	gate  chan struct{}
}

func (f *frozen) Write(p []byte) (int, error) {
	select {
	case <-f.gate:
	default:
		f.begun <- struct{}{}
		<-f.gate
	}
	return len(p), nil
}
