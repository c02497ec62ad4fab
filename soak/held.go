package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"envapi/sandbox/proctree"
)

// held is what a service holds at one moment.
type held struct {
	descriptors, goroutines, threads int64
	processes                        int64 // that descend from it
	memory                           int64 // resident bytes of the service itself
	mounts                           int64 // of this host's that name its folder
	cgroups                          int64 // below its own
	files                            int64 // in its data folder, the database apart
	disk                             int64 // bytes of its data folder as a whole
}

func (h held) String() string {
	return fmt.Sprintf("descriptors %d, goroutines %d, threads %d, processes %d, memory %.1f MiB, mounts %d, cgroups %d, files %d, disk %.1f MiB",
		h.descriptors, h.goroutines, h.threads, h.processes, mib(h.memory), h.mounts, h.cgroups, h.files, mib(h.disk))
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// growth is how much more a service may hold at rest after the load than before it.
// Descriptors, goroutines: connections that the store keeps, a box that is made ready.
// Groups: each environment keeps as many slots as once had a command at one time, which
// is chance, and here one more in each of ten environments, of four groups in version 1;
// one that leaked with each command would be hundreds. Threads are never given back: as
// many as once waited in the kernel at one time.
// Memory is what the collector has not given back. On the disk is the database, which
// keeps the room of what was removed, and its journal.
var growth = held{
	descriptors: 5, goroutines: 3, threads: 32, processes: 1, memory: 96 << 20,
	cgroups: 40, disk: 48 << 20,
}

// descriptorsOfAGroup is how many descriptors come with a group at most: a slot without a
// command is kept open, see package sandbox/cgroup, with nine for its four groups in
// version 1 and fewer in version 2.
const descriptorsOfAGroup = 3

// grown says what is more than before and an allowance, nil where nothing is.
func (h held) grown(before, allowed held) error {
	var wrong []error
	for _, c := range []struct {
		name                 string
		now, before, allowed int64
	}{
		{"descriptors", h.descriptors, before.descriptors, allowed.descriptors + descriptorsOfAGroup*max(0, h.cgroups-before.cgroups)},
		{"goroutines", h.goroutines, before.goroutines, allowed.goroutines},
		{"threads", h.threads, before.threads, allowed.threads},
		{"processes", h.processes, before.processes, allowed.processes},
		{"bytes of memory", h.memory, before.memory, allowed.memory},
		{"mounts", h.mounts, before.mounts, allowed.mounts},
		{"cgroups", h.cgroups, before.cgroups, allowed.cgroups},
		{"files", h.files, before.files, allowed.files},
		{"bytes on the disk", h.disk, before.disk, allowed.disk},
	} {
		if c.now > c.before+c.allowed {
			wrong = append(wrong, fmt.Errorf("%s are not flat: %d at rest after the load, %d before it, %d more allowed", c.name, c.now, c.before, c.allowed))
		}
	}
	return errors.Join(wrong...)
}

// How long a service may take to come to rest, and how often it must then be seen so.
const (
	restWithin = 3 * time.Minute
	restLooks  = 4
	restPause  = 250 * time.Millisecond
)

// rest waits until the service has let go of what the clients had and gives what it
// holds then: until it holds no more than it may beyond what it held before, or, where
// there is no before, until what it holds stays the same. Of descriptors and goroutines
// it gives the least of the looks, which have some themselves. What does not come to rest
// in time is given as it is.
func (s *service) rest(ctx context.Context, before *held) (held, error) {
	deadline := time.Now().Add(restWithin)
	var last held
	for same := 0; ; {
		now, err := s.held(ctx)
		if err != nil {
			return held{}, err
		}
		if quiet(now, last) {
			same++
			now.descriptors, now.goroutines = min(now.descriptors, last.descriptors), min(now.goroutines, last.goroutines)
		} else {
			same = 0
		}
		last = now
		settled := same >= restLooks && (before == nil || now.grown(*before, growth) == nil)
		if settled || time.Now().After(deadline) {
			return now, nil
		}
		select {
		case <-ctx.Done():
			return now, ctx.Err()
		case <-s.ended:
			return now, errors.New("the service has ended")
		case <-time.After(restPause):
		}
	}
}

// quiet says that two looks differ in nothing but what changes also where nobody comes.
func quiet(a, b held) bool {
	near := func(a, b int64) bool { return max(a-b, b-a) <= 4 } // the connections of the looks themselves
	return near(a.descriptors, b.descriptors) && near(a.goroutines, b.goroutines) &&
		a.processes == b.processes && a.cgroups == b.cgroups && a.files == b.files
}

// watch prints what the service holds, now and then, until the function that it gives is
// called.
func (s *service) watch(ctx context.Context, out io.Writer, every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for begun := time.Now(); ; {
			select {
			case <-ctx.Done():
				return
			case <-s.ended:
				fmt.Fprintln(out, "the service has ended")
				return
			case <-time.After(every):
			}
			if now, err := s.held(ctx); err == nil {
				fmt.Fprintf(out, "%-8s %s\n", time.Since(begun).Round(time.Second), now)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// held looks at the service.
func (s *service) held(ctx context.Context) (held, error) {
	h, err := s.ofItself(ctx)
	if err != nil {
		return held{}, err
	}
	below, err := proctree.Descendants(s.cmd.Process.Pid)
	if err != nil {
		return held{}, err
	}
	h.processes = int64(len(below))
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return held{}, err
	}
	h.mounts = int64(bytes.Count(mounts, []byte(s.folder)))
	h.cgroups = s.cgroups()
	h.files, h.disk = s.stored()
	return h, nil
}

// ofItself takes what the service tells of itself: only root may look into it.
func (s *service) ofItself(ctx context.Context) (held, error) {
	body, err := get(ctx, s.metrics)
	if err != nil {
		return held{}, err
	}
	h := held{descriptors: -1, goroutines: -1, threads: -1, memory: -1}
	wanted := map[string]*int64{
		"process_open_fds": &h.descriptors, "go_goroutines": &h.goroutines,
		"go_threads": &h.threads, "process_resident_memory_bytes": &h.memory,
	}
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if to := wanted[name]; to != nil {
			number, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return held{}, err
			}
			*to = int64(number)
		}
	}
	for name, value := range wanted {
		if *value < 0 {
			return held{}, fmt.Errorf("the service does not say %s", name)
		}
	}
	return h, nil
}

// cgroups counts the groups below those that the service has made, in all hierarchies.
// They are named after a folder of its own, see package sandbox/host.
func (s *service) cgroups() int64 {
	info, err := os.Stat(filepath.Join(s.data(), "private"))
	if err != nil {
		return 0
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	name := fmt.Sprintf("/envapi-%x-%x/", is.Dev, is.Ino)
	var count int64
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.Contains(path, name) {
			count++
		}
		return nil // what has gone meanwhile counts no more
	})
	return count
}

// database begins the names of the files that hold the records.
const database = "envapi.db"

// stored counts the files of the data folder but the records, and the bytes of all.
// What cannot be looked into is not counted: as root there is no such.
func (s *service) stored() (files, space int64) {
	_ = filepath.WalkDir(s.data(), func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it has gone
		}
		if info, err := e.Info(); err == nil {
			if is, ok := info.Sys().(*syscall.Stat_t); ok {
				space += is.Blocks * 512
			}
		}
		if !strings.HasPrefix(e.Name(), database) {
			files++
		}
		return nil
	})
	return files, space
}
