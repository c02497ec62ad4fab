package fsuser_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/internal/require"
	"envapi/sandbox/fsuser"
)

// somebody is a uid of nobody here, and group one that the service has beside its
// own.
const (
	somebody = 65531
	group    = 65530
)

func TestMain(m *testing.M) {
	if os.Geteuid() == 0 {
		if err := syscall.Setgroups([]int{group}); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func open(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func owner(t *testing.T, name string) (uid, gid uint32) {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("no stat")
	}
	return stat.Uid, stat.Gid
}

func TestFilesAreTheUsersAndHisRightsHold(t *testing.T) {
	if os.Geteuid() != 0 {
		require.Feature(t, "root", "only root can touch files as another user")
	}
	dir := open(t)
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(dir, "made")
	err := fsuser.Do(somebody, somebody, func() error {
		if _, err := os.ReadFile(secret); !errors.Is(err, os.ErrPermission) {
			t.Errorf("a file of root's: got %v", err)
		}
		if err := os.Chown(secret, somebody, somebody); !errors.Is(err, os.ErrPermission) {
			t.Errorf("a file of root's is given away: got %v", err)
		}
		if groups, err := unix.Getgroups(); err != nil || len(groups) != 0 {
			t.Errorf("got the groups %v, %v", groups, err)
		}
		return os.WriteFile(made, nil, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	if uid, gid := owner(t, made); uid != somebody || gid != somebody {
		t.Errorf("the file is of %d:%d", uid, gid)
	}
	if _, err := os.ReadFile(secret); err != nil {
		t.Errorf("the service has lost its rights: %v", err)
	}
}

func TestWhatFailsIsTold(t *testing.T) {
	want := errors.New("no")
	if err := fsuser.Do(somebody, somebody, func() error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}

// TestTheServiceHasItsGroupsAgain: those of a thread are of the thread alone.
func TestTheServiceHasItsGroupsAgain(t *testing.T) {
	if os.Geteuid() != 0 {
		require.Feature(t, "root", "only root can touch files as another user")
	}
	for range 20 {
		if err := fsuser.Do(somebody, somebody, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	threads, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	for _, thread := range threads {
		status, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		if !strings.Contains(string(status), fmt.Sprintf("\nGroups:\t%d \n", group)) {
			t.Errorf("%s has others:\n%s", thread, status)
		}
	}
}

// TestNoRightsLeakBetweenGoroutines: many do things as two users and as the
// service at the same time, on threads that they share.
func TestNoRightsLeakBetweenGoroutines(t *testing.T) {
	if os.Geteuid() != 0 {
		require.Feature(t, "root", "only root can touch files as another user")
	}
	dir := open(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			uid := []int{0, somebody, somebody - 1}[i%3]
			name := filepath.Join(dir, string(rune('a'+i)))
			for range 500 {
				if err := fsuser.Do(uid, uid, func() error { return os.WriteFile(name, nil, 0o600) }); err != nil {
					t.Error(err)
					return
				}
				if got, _ := owner(t, name); int(got) != uid {
					t.Errorf("a file of %d is of %d", uid, got)
				}
				_ = os.Remove(name)
			}
		})
	}
	all.Wait()
}

// TestOnceMoreWithin: what is done as a user may ask for that again, and has the
// user's rights still when that is over.
func TestOnceMoreWithin(t *testing.T) {
	if os.Geteuid() != 0 {
		require.Feature(t, "root", "only root can touch files as another user")
	}
	secret := filepath.Join(open(t), "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func() error {
		if _, err := os.ReadFile(secret); !errors.Is(err, os.ErrPermission) {
			return fmt.Errorf("a file of root's: got %w", err)
		}
		return nil
	}
	err := fsuser.Do(somebody, somebody, func() error {
		if err := fsuser.Do(somebody-1, somebody-1, refused); err == nil {
			t.Error("one user becomes another")
		}
		return errors.Join(fsuser.Do(somebody, somebody, refused), refused())
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := os.ReadFile(secret); err != nil {
		t.Errorf("the service has lost its rights: %v", err)
	}
}

// TestAPanicGivesTheRightsBack: it may be recovered, and the thread used again.
func TestAPanicGivesTheRightsBack(t *testing.T) {
	if os.Geteuid() != 0 {
		require.Feature(t, "root", "only root can touch files as another user")
	}
	secret := filepath.Join(open(t), "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // so that it is the same thread that is looked at
	defer runtime.UnlockOSThread()
	func() {
		defer func() { _ = recover() }()
		_ = fsuser.Do(somebody, somebody, func() error { panic("no") })
	}()
	if _, err := os.ReadFile(secret); err != nil {
		t.Errorf("the service has lost its rights: %v", err)
	}
}
