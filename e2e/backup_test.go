package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/internal/require"
	"envapi/internal/testbin"
)

// backedUp is what a backup says it holds.
type backedUp struct {
	Environments, Archived int
	Files, Bytes           int64
	Left                   []struct {
		ID     string `json:"environment_id"`
		Reason string
	}
}

// backup is the command, for the settings of a service.
func (s *service) backup(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(testbin.Path(t, "envapi-http"), append([]string{"backup"}, args...)...)
	c.Dir, c.Env = t.TempDir(), settings(s.config, nil)
	return c
}

// backsUp makes a backup that must have everything, and says what it holds.
func (s *service) backsUp(t *testing.T, to string) backedUp {
	t.Helper()
	out, code := output(t, s.backup(t, "--json", to))
	if code != 0 {
		t.Fatalf("the backup exited with %d: %s", code, out)
	}
	var b backedUp
	if err := json.Unmarshal([]byte(out), &b); err != nil {
		t.Fatalf("it says %s: %v", out, err)
	}
	return b
}

// output gives what a program says, in both streams, and its exit code.
func output(t *testing.T, c *exec.Cmd) (string, int) {
	t.Helper()
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// mended are words of the log of a start that found something half.
var mended = []string{"took back", "removed a", "removed the", "dropped a", "missing", "laid out", "finished a", "cannot mend", "undid"}

// serves starts a service on a backup, in which nothing must be half.
func (s *service) serves(t *testing.T, folder string) *service {
	t.Helper()
	c := s.config
	c.data = folder
	again := start(t, c)
	for _, word := range mended {
		if strings.Contains(again.output.String(), word) {
			t.Errorf("the start on %s had to mend something:\n%s", folder, again.output)
		}
	}
	return again
}

// checks has a backup checked, in which a start may find nothing but that commands and
// shells of the service that was copied are none of its own.
func (s *service) checks(t *testing.T, folder string) {
	t.Helper()
	c := exec.Command(testbin.Path(t, "envapi-http"), "check", "--json", folder)
	c.Dir, c.Env = t.TempDir(), settings(s.config, nil)
	out, code := output(t, c)
	var report struct {
		Findings []struct{ Level, What, Says string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code > 1 {
		t.Fatalf("check exited with %d (%v): %s", code, err, out)
	}
	for _, f := range report.Findings {
		if f.Level != "note" && f.What != "envapi.db" {
			t.Errorf("%s: %s", f.What, f.Says)
		}
	}
}

// namesIn gives the names in a folder, sorted.
func namesIn(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestABackupIsADataFolder(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p, archived := s.place(t), s.place(t)
		p.sh(t, aTree+"; mkdir -m 0 shut")
		before := p.sh(t, looks)
		archived.sh(t, aTree)
		packed := archived.sh(t, looks)
		s.must(t, "archive_environment", archived.in(nil))
		ended := p.exec(t, object{"command": "echo out; exit 9", "idempotency_key": "once"})
		sh := p.open(t, object{"name": "main"})
		running := p.background(t, "echo began; sleep 300")
		p.output(t, running.ID, object{"wait_ms": 10000})

		for _, when := range []string{"while it serves", "stopped", "killed"} {
			switch when {
			case "stopped":
				s.stop(t)
			case "killed":
				s = s.restart(t)
				p.rest = s.rest
				p.sh(t, "echo late > late")
				before = p.sh(t, looks)
				s.kill()
			}
			to := filepath.Join(passable(t), "backup")
			b := s.backsUp(t, to)
			if b.Environments != 2 || b.Archived != 1 || b.Files < 8 || b.Bytes < 6_000_000 {
				t.Errorf("%s it holds %+v", when, b)
			}
			if got, want := strings.Join(namesIn(t, to), " "), "archives envapi.db logs workspaces"; got != want {
				t.Errorf("%s it has %s, and not %s", when, got, want)
			}
			if when == "while it serves" { // and the service still has all
				if got := p.rest.get(t, running.ID, 0); got.Status != "running" || p.sh(t, looks) != before {
					t.Error("the service is another one after the backup")
				}
				s.stop(t)
			}
			if when == "stopped" { // restored as docs/operations.md says
				made := &service{config: s.config}
				made.data, to = to, filepath.Join(passable(t), "data")
				made.backsUp(t, to)
			}
			if err := os.Chmod(to, 0o711); err != nil {
				t.Fatal(err)
			}
			again := s.serves(t, to)
			old, woken := place{again.rest, p.id}, place{again.rest, archived.id}
			if after := old.sh(t, looks); after != before {
				t.Errorf("%s the folder is\n%s\nand was\n%s", when, after, before)
			}
			if after := woken.sh(t, looks); after != packed {
				t.Errorf("%s the archive is\n%s\nand was\n%s", when, after, packed)
			}
			if got := again.get(t, ended.ID, 0); got.exit() != 9 || got.Stdout.Text != "out\n" {
				t.Errorf("%s the command is %s", when, got.brief())
			}
			if got := old.exec(t, object{"command": "echo out; exit 9", "idempotency_key": "once"}); got.ID != ended.ID {
				t.Errorf("%s the key does not hold", when)
			}
			if got := again.get(t, running.ID, 0); got.Status != "lost" || got.Stdout.Text != "began\n" {
				t.Errorf("%s what ran is %s", when, got.brief())
			}
			if err := again.gives("get_shell", object{"shell_id": sh.id}, "close_reason", "service_restarted"); err != nil && when == "while it serves" {
				t.Error(err)
			}
			again.stop(t)
		}
	})
}

// TestBackupsUnderLoad takes some, two at one time, while everything is done that a backup
// could meet half-done, and serves each.
func TestBackupsUnderLoad(t *testing.T) {
	t.Parallel()
	s, d := start(t, config{env: map[string]string{
		"ENVAPI_MAX_ENVIRONMENTS_PER_ACCOUNT": "60000", "ENVAPI_MAX_ENVIRONMENTS_PER_PROFILE": "60000",
	}}), &diary{}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var working sync.WaitGroup
	begun := make(chan struct{}, 6)
	for _, labor := range laborers(t, s, d) {
		working.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				err := labor(i)
				if i == 0 {
					begun <- struct{}{}
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range cap(begun) {
		<-begun
	}
	type taken struct {
		folder string
		facts  []fact
	}
	home := passable(t)
	backups := make([]taken, 2*require.Rounds(t, 1))
	for i := range backups {
		b := taken{filepath.Join(home, fmt.Sprint("backup-", i)), d.soFar()}
		var said buffer
		beside := s.backup(t, filepath.Join(home, fmt.Sprint("beside-", i)))
		beside.Stderr = &said
		if err := beside.Start(); err != nil {
			t.Fatal(err)
		}
		s.backsUp(t, b.folder)
		if err := beside.Wait(); err != nil {
			t.Errorf("the one at the same time: %v: %s", err, &said)
		}
		backups[i] = b
	}
	stop()
	working.Wait()
	s.stop(t)
	if names := namesIn(t, home); len(names) != 2*len(backups) {
		t.Errorf("there are %v", names)
	}
	for _, b := range backups {
		s.checks(t, b.folder)
		again := s.serves(t, b.folder)
		for _, f := range b.facts {
			if err := f.still(again.rest); err != nil {
				t.Errorf("in %s of %d facts %s is not so: %v", filepath.Base(b.folder), len(b.facts), f.what, err)
			}
		}
		for _, e := range again.must(t, "list_environments", object{"limit": 200})["items"].([]any) {
			state := text(e.(object), "state")
			if state != "active" && state != "archived" {
				t.Errorf("an environment is %s", state)
			}
		}
		again.stop(t)
	}
}

// TestABackupThatIsEndedIsNone: neither a signal nor a kill leaves anything that could be
// taken for one, and what a kill left goes with the next.
func TestABackupThatIsEndedIsNone(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	p := s.place(t)
	p.sh(t, "for d in $(seq 15); do mkdir $d; for f in $(seq 100); do echo $f > $d/$f; done; done; mkdir -m 0 locked")
	home := passable(t)
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		to := filepath.Join(home, end.String())
		err := eventually(func() error { // until one was met in the middle
			if err := os.RemoveAll(to); err != nil {
				return err
			}
			return s.endsABackup(t, to, end)
		})
		if err != nil {
			t.Fatal(err)
		}
		if isThere(to) {
			t.Errorf("after %v there is a backup", end)
		}
		names := namesIn(t, home)
		if end == syscall.SIGTERM && len(names) != 0 {
			t.Errorf("after %v there are %v", end, names)
		}
		if end == syscall.SIGKILL && (len(names) != 1 || !isThere(filepath.Join(home, names[0], "UNFINISHED-BACKUP"))) {
			t.Errorf("after %v there are %v", end, names)
		}
	}
	s.backsUp(t, filepath.Join(home, "whole"))
	if names := namesIn(t, home); !slices.Equal(names, []string{"whole"}) {
		t.Errorf("after the next one there are %v", names)
	}
	p.usable(t)
}

// endsABackup ends one that has begun to copy files.
func (s *service) endsABackup(t *testing.T, to string, end syscall.Signal) error {
	t.Helper()
	c := s.backup(t, to)
	if err := c.Start(); err != nil {
		return final{err}
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		if met, _ := filepath.Glob(to + ".partial-*/making/tree"); len(met) > 0 {
			break
		}
		select {
		case err := <-ended:
			return fmt.Errorf("it ended before it was met: %w", err)
		default:
		}
	}
	_ = c.Process.Signal(end)
	if err := <-ended; err == nil {
		return errors.New("it was done before it was ended")
	}
	return nil
}

func TestABackupNeedsRoom(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	p := s.place(t)
	p.sh(t, "head -c 24000000 /dev/urandom > noise")
	small := smallDisk(t, 16<<20)
	inodes := t.TempDir()
	if err := unix.Mount("tmpfs", inodes, "tmpfs", 0, "nr_inodes=300,mode=0755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(inodes, 0); err != nil {
			t.Error(err)
		}
	})
	for where, script := range map[string]string{small: "true", inodes: "for f in $(seq 400); do : > $f; done"} {
		p.sh(t, script)
		out, code := output(t, s.backup(t, filepath.Join(where, "backup")))
		if code != 1 || !strings.Contains(out, "room") {
			t.Errorf("it exited with %d: %s", code, out)
		}
		if names := namesIn(t, where); len(names) != 0 {
			t.Errorf("it left %v", names)
		}
	}
	p.usable(t)
}

// TestABackupNamesWhatItCouldNotCopy, and has the rest.
func TestABackupNamesWhatItCouldNotCopy(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	p, lost := s.place(t), s.place(t)
	p.sh(t, "echo kept > file")
	s.must(t, "archive_environment", lost.in(nil))
	if err := os.Remove(s.archiveOf(lost.id)); err != nil {
		t.Fatal(err)
	}
	bad := []string{lost.id}
	if os.Getuid() == 0 {
		mounted := s.place(t)
		mounted.sh(t, "mkdir m")
		at := filepath.Join(s.folderOf(mounted.id), "m")
		if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=4096"); err != nil {
			require.Feature(t, "mounts", err.Error())
		}
		t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
		bad = append(bad, mounted.id)
	}
	to := filepath.Join(passable(t), "backup")
	out, code := output(t, s.backup(t, to))
	if code != 3 {
		t.Fatalf("it exited with %d: %s", code, out)
	}
	for _, id := range bad {
		if !strings.Contains(out, id) {
			t.Errorf("it does not name %s: %s", id, out)
		}
	}
	if got := readFile(t, filepath.Join(to, "workspaces", p.id, "file")); got != "kept" {
		t.Errorf("the other one has %q", got)
	}
}

func TestABackupRefuses(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	s.place(t)
	home := passable(t)
	link := filepath.Join(home, "link")
	if err := os.Symlink(s.data, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		to, says string
		code     int
	}{
		{home, "is there already", 1},
		{link, "is there already", 1},
		{filepath.Join(home, "none", "backup"), "must be there", 1},
		{filepath.Join(s.data, "backup"), "cannot be in the data folder", 1},
		{filepath.Join(s.data, "logs", "backup"), "cannot be in the data folder", 1},
		{filepath.Join(link, "backup"), "cannot be in the data folder", 1},
		{"", "name one folder", 2},
	} {
		before := namesIn(t, s.data)
		out, code := output(t, s.backup(t, c.to))
		if code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%q: it exited with %d: %s", c.to, code, out)
		}
		if after := namesIn(t, s.data); !slices.Equal(after, before) {
			t.Errorf("%q: it left %v", c.to, after)
		}
	}
	if os.Getuid() == 0 { // also where it is mounted elsewhere
		at := t.TempDir()
		if err := unix.Mount(filepath.Join(s.data, "workspaces"), at, "", unix.MS_BIND, ""); err != nil {
			require.Feature(t, "mounts", err.Error())
		}
		t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
		if out, code := output(t, s.backup(t, filepath.Join(at, "backup"))); code != 1 || !strings.Contains(out, "cannot be in the data folder") {
			t.Errorf("through a mount it exited with %d: %s", code, out)
		}
	}
	nothing := *s
	nothing.data = home
	if out, code := output(t, nothing.backup(t, filepath.Join(passable(t), "backup"))); code != 1 || !strings.Contains(out, "no records") {
		t.Errorf("without records it exited with %d: %s", code, out)
	}
}
