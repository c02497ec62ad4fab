package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"envapi/internal/require"
)

// bounded makes an environment with limits of its own.
func (s *service) bounded(t *testing.T, limits object) place {
	t.Helper()
	made := as[struct{ ID string }](t, s.must(t, "create_environment", object{"limits": limits}))
	return place{s.rest, made.ID}
}

// holds says whether a control is in force, and how or why not.
func (s *service) holds(t *testing.T, control string) (bool, string) {
	t.Helper()
	status := as[struct {
		Sandbox struct {
			Controls []struct {
				Name     string
				Enforced bool
				Detail   string
			}
		}
	}](t, s.must(t, "get_status", nil))
	for _, c := range status.Sandbox.Controls {
		if c.Name == control {
			return c.Enforced, c.Detail
		}
	}
	t.Fatalf("there is no control %q", control)
	return false, ""
}

// usage gives what an environment uses of a limit. On a busy host it may not be
// counted in time.
func (p place) usage(t *testing.T, limit string) (used, allowed int64) {
	t.Helper()
	err := eventually(func() error {
		env := as[struct {
			Usage map[string]struct{ Used, Allowed *int64 }
		}](t, p.must(t, "get_environment", p.in(nil)))
		u := env.Usage[limit]
		if u.Used == nil || u.Allowed == nil {
			return fmt.Errorf("the usage of %s is %+v", limit, u)
		}
		used, allowed = *u.Used, *u.Allowed
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return used, allowed
}

const smallDiskBytes, fewFiles = 8 << 20, 500

// tight are limits that are small for one of the two.
func tight(limit string) object {
	if limit == "files" {
		return object{limit: fewFiles}
	}
	return object{limit: smallDiskBytes}
}

// hoarders write more than they may, and then would run on. Those that are quick
// go on writing, since the first count may come after all of it.
var hoarders = []struct{ name, script, reason string }{
	{"files of a megabyte", "for i in $(seq 400); do head -c 1M /dev/zero > f$i; sleep .01; done", "disk_bytes"},
	{"one file, in the background", "nohup sh -c 'for i in $(seq 400); do head -c 1M /dev/zero > f$i; sleep .01; done' >/dev/null 2>&1 & sleep 1000", "disk_bytes"},
	{"small files", "i=0; while [ $i -lt 200000 ]; do : > f$((i+=1)); done", "files"},
	{"directories in directories", "exec python3 -c 'import itertools,os,time\nfor i in itertools.count(): os.mkdir(\"d\"); os.chdir(\"d\"); time.sleep(i // 2000 * .1)'", "files"},
	{"links to one file", ": > f; exec python3 -c 'import itertools,os,time\nfor i in itertools.count(): os.symlink(\"f\", \"l%d\" % i); time.sleep(i // 20000 * .1)'", "files"},
}

func TestD12AFolderThatGrowsBeyondItsLimitIsStopped(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		if ok, how := s.holds(t, "disk"); !ok || !strings.Contains(how, "2s") {
			t.Errorf("the control is %v, %q", ok, how)
		}
		other := s.place(t)
		bystander := other.background(t, "while :; do echo on > beat; sleep .1; done")
		for _, h := range hoarders {
			t.Run(h.name, func(t *testing.T) {
				p := s.bounded(t, tight(h.reason))
				c := p.exec(t, object{"command": h.script + "; sleep 1000"})
				if c.Status != "killed" || c.Reason != h.reason || !strings.Contains(c.Next, "reset_environment") {
					t.Fatalf("it is %s %s: %s; stderr %s", c.Status, c.Reason, c.Next, c.Stderr.Text)
				}
				if used, allowed := p.usage(t, h.reason); used <= allowed {
					t.Errorf("%v of %v are used", used, allowed)
				}
				p.sh(t, "find . -mindepth 1 -delete; echo whole > again")
				if used, allowed := p.usage(t, h.reason); used > allowed {
					t.Errorf("after cleaning up, %v of %v are used", used, allowed)
				}
				p.sh(t, "sleep 2.5; cat again")
				p.must(t, "delete_environment", p.in(nil))
			})
		}
		if c := other.rest.get(t, bystander.ID, 0); c.Status != "running" {
			t.Errorf("the command of another environment is %s %s", c.Status, c.Reason)
		}
	})
}

// In the namespace tier they are in memory, and count as that.
func TestD12TemporaryFilesOnDiskCount(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		if s.tier == "namespace" {
			return
		}
		p := s.bounded(t, tight("disk_bytes"))
		c := p.exec(t, object{"command": `for i in $(seq 400); do head -c 1M /dev/zero > $TMPDIR/f$i; sleep .01; done; sleep 1000`})
		if c.Status != "killed" || c.Reason != "disk_bytes" {
			t.Fatalf("it is %s %s: %s; stderr %s", c.Status, c.Reason, c.Next, c.Stderr.Text)
		}
		p.usable(t)
	})
}

// hidden writes to files that are in no folder.
const hidden = `exec python3 -c '
import os, time
held = []
for i in range(400):
    fd = os.open("f", os.O_RDWR | os.O_CREAT)
    os.unlink("f")
    os.write(fd, bytes(1 << 20))
    held.append(fd)
    time.sleep(.01)
time.sleep(1000)'`

func TestD12DeletedFilesThatAreStillOpenCount(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can tell whose a deleted file is")
	}
	t.Parallel()
	s := start(t, config{})
	p := s.bounded(t, tight("disk_bytes"))
	if c := p.exec(t, object{"command": hidden}); c.Status != "killed" || c.Reason != "disk_bytes" {
		t.Fatalf("it is %s %s: %s; stderr %s", c.Status, c.Reason, c.Next, c.Stderr.Text)
	}
	if used, allowed := p.usage(t, "disk_bytes"); used > allowed {
		t.Errorf("%d of %d are used when nobody holds them any more", used, allowed)
	}
	p.usable(t)
}

func TestD12HolesInFilesTakeNoSpace(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.bounded(t, object{"disk_bytes": smallDiskBytes})
		p.sh(t, "for i in $(seq 100); do truncate -s 7M s$i; done; sleep 3; echo more > f; sleep 3")
		if used, _ := p.usage(t, "disk_bytes"); used > smallDiskBytes {
			t.Errorf("%v bytes are used", used)
		}
	})
}

func TestD12AnEnvironmentIsFreedByReset(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	p := s.bounded(t, object{"files": fewFiles})
	if c := p.exec(t, object{"command": hoarders[2].script + "; sleep 1000"}); c.Reason != "files" {
		t.Fatalf("it is %s %s", c.Status, c.Reason)
	}
	p.must(t, "reset_environment", p.in(nil))
	if used, _ := p.usage(t, "files"); used != 0 {
		t.Errorf("%v files after a reset", used)
	}
	p.usable(t)
}

// memoryOrSkip ends a test where this service has no limit on memory.
func (s *service) memoryOrSkip(t *testing.T) {
	t.Helper()
	if ok, why := s.holds(t, "memory"); !ok {
		require.Feature(t, "cgroup", "memory is not limited: "+why)
	}
}

func TestD12WhoNeedsTooMuchMemoryIsToldSo(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	s.memoryOrSkip(t)
	other := s.place(t)
	bystander := other.background(t, "sleep 1000")
	p := s.place(t)
	for _, c := range []struct {
		in   object
		exit int // -1: the leader was killed
	}{
		{object{"argv": []string{"python3", "-c", "x = bytearray(3 << 30)"}}, -1},
		{object{"command": "python3 -c 'x = bytearray(3 << 30)'; exit"}, 137},
	} {
		got := p.exec(t, c.in)
		if got.Status != "out_of_memory" || got.exit() != c.exit || got.Signal != "" || !strings.Contains(got.Next, "memory_bytes") {
			t.Errorf("%v: %s %d %s: %s", c.in, got.Status, got.exit(), got.Signal, got.Next)
		}
	}
	if got := p.exec(t, object{"command": "python3 -c 'x = bytearray(3 << 30)'; true"}); got.Status != "exited" || got.exit() != 0 {
		t.Errorf("who got by is %s %d", got.Status, got.exit())
	}
	if got := other.rest.get(t, bystander.ID, 0); got.Status != "running" {
		t.Errorf("the command of another environment is %s", got.Status)
	}
	p.usable(t)
}

func TestMemoryInUseIsShownAgainstItsLimit(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	s.memoryOrSkip(t)
	p := s.bounded(t, object{"memory_bytes": 256 << 20})
	p.background(t, "exec python3 -c 'x = bytearray(64 << 20); import time; time.sleep(1000)'")
	err := eventually(func() error {
		used, allowed := p.usage(t, "memory_bytes")
		if used < 64<<20 || used > allowed || allowed != 256<<20 {
			return fmt.Errorf("%v of %v are used", used, allowed)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestExecOverTheProcessesNamesTheLimit(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	p := s.bounded(t, object{"processes": 16})
	p.background(t, "for i in $(seq 14); do sleep 1000 & done; wait")
	var p409 *problem
	err := eventually(func() error {
		_, err := p.call(context.Background(), "exec", p.in(object{"command": "sleep 1000", "wait_ms": 0}))
		if !errors.As(err, &p409) {
			return fmt.Errorf("exec gives %w", errors.Join(errors.New("no refusal"), err))
		}
		return nil
	})
	if err != nil || p409.Code != "quota_exceeded" || p409.Limit != "processes" {
		t.Fatalf("%v, %+v", err, p409)
	}
	p.must(t, "reset_environment", p.in(nil))
	p.usable(t)
}
