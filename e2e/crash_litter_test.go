package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// noProcess sees that none is left of a service that was killed.
func noProcess(t *testing.T, mark string) {
	t.Helper()
	err := eventually(func() error {
		if n := alive(mark); n > 0 {
			return fmt.Errorf("%d processes outlive the service", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// noBox sees that a service that has just started has no sandbox: no mount and no file
// of one before it, and no cgroups but those in which it tried what this host has.
func (s *service) noBox(t *testing.T) {
	t.Helper()
	err := eventually(func() error {
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		for line := range strings.Lines(string(mounts)) {
			if strings.Contains(line, s.data+"/") {
				err = fmt.Errorf("a mount is left: %s", line)
			}
		}
		for _, group := range s.cgroups(t) {
			if !triedIn.MatchString(group) {
				err = errors.Join(err, fmt.Errorf("a cgroup is left: %s", group))
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	nothingIsLeftIn(t, filepath.Join(s.data, "private"))
}

// cgroups are those of the service, in all hierarchies.
func (s *service) cgroups(t *testing.T) []string {
	t.Helper()
	var is unix.Stat_t
	if err := unix.Stat(filepath.Join(s.data, "private"), &is); err != nil {
		if errors.Is(err, fs.ErrNotExist) { // it has none before it has its folder
			return nil
		}
		t.Fatal(err)
	}
	name := fmt.Sprintf("/envapi-%x-%x", is.Dev, is.Ino)
	var all []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // others' come and go
			return nil
		}
		if err == nil && d.IsDir() && strings.Contains(path, name) {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// triedIn are the cgroups that each start makes and uses again: of two tiers a box with
// a command each, which gets another slot where the first is still busy with its end.
// Witnesses have more.
var triedIn = regexp.MustCompile(`/envapi-[0-9a-f]+-[0-9a-f]+(/a[01](/b0(/c[01].*)?)?)?$`)

// noLitter sees that the data folder holds nothing beside what the witnesses know of.
func (s *service) noLitter(t *testing.T, witnesses []*witness) {
	t.Helper()
	folders, archives, logs := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, w := range witnesses {
		for id, d := range w.envs {
			folders[id] = d.state == "active"
			archives[id+".tar.zst"] = d.state == "archived"
			logs[id] = true
		}
	}
	err := eventually(func() error {
		return errors.Join(
			onlyIn(filepath.Join(s.data, "workspaces"), folders), onlyIn(filepath.Join(s.data, "archives"), archives),
			onlyIn(filepath.Join(s.data, "trash"), nil), onlyIn(filepath.Join(s.data, "logs"), logs),
		)
	})
	if err != nil {
		t.Error(err)
	}
	s.noStaging(t)
	for _, w := range witnesses {
		for _, d := range w.envs {
			if err := s.sameOutside(d); err != nil {
				t.Errorf("the folder of %s: %v", d.id, err)
			}
			if err := s.onlyLogs(d.id, w); err != nil {
				t.Error(err)
			}
		}
	}
}

// onlyIn fails where a folder holds anything else than what is wanted of it.
func onlyIn(dir string, want map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !want[e.Name()] {
			return fmt.Errorf("%s is left in %s", e.Name(), dir)
		}
	}
	return nil
}

// sameOutside compares the names in a folder with those that the API shows.
func (s *service) sameOutside(d *dwelling) error {
	if d.state != "active" {
		return nil
	}
	n := 0
	root := s.folderOf(d.id)
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		n++
		if _, known := d.tree[strings.TrimPrefix(path, root+"/")]; !known {
			return fmt.Errorf("%s is too many", path)
		}
		return nil
	})
	if err == nil && n != len(d.tree) {
		err = fmt.Errorf("it holds %d of %d", n, len(d.tree))
	}
	return err
}

// onlyLogs fails where there is output of what nobody knows.
func (s *service) onlyLogs(env string, w *witness) error {
	entries, err := os.ReadDir(filepath.Join(s.data, "logs", env))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		id := strings.TrimSuffix(e.Name(), ".d")
		if w.commands[id] == nil && w.shells[id] == nil {
			return fmt.Errorf("the output %s of %s is nobody's", e.Name(), env)
		}
	}
	return err
}
