package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// mark is the argument of a sleep that no other process has: how tests find
// their processes from outside, whatever namespaces these are in.
func mark() string { return fmt.Sprintf("9%012d", rand.Int64N(1e12)) }

// alive counts the processes of this host with the mark among their arguments
// that are no zombies. A sleep only: shells carry it in their scripts too.
func alive(mark string) int {
	n := 0
	for _, path := range processes() {
		args, err := os.ReadFile(filepath.Join(path, "cmdline"))
		if err == nil && bytes.HasSuffix(args, []byte("\x00"+mark+"\x00")) {
			n++
		}
	}
	return n
}

func processes() []string {
	paths, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	return paths
}

// mustRun waits until n processes have the mark.
func mustRun(t *testing.T, mark string, n int) {
	t.Helper()
	err := eventually(func() error {
		if got := alive(mark); got != n {
			return fmt.Errorf("%d processes run, want %d", got, n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// resident is the resident memory of a process in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	for line := range strings.Lines(readFile(t, fmt.Sprintf("/proc/%d/status", pid))) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// threads counts the threads of a process.
func threads(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// folderSize is the disk space of a folder's files.
func folderSize(t *testing.T, dir string) int64 {
	t.Helper()
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return total
}

// zombies counts the ended and unreaped processes below a process.
func zombies(pid int) int {
	parents, states := map[int]int{}, map[int]string{}
	for _, path := range processes() {
		stat, err := os.ReadFile(filepath.Join(path, "stat"))
		if err != nil {
			continue
		}
		// The name, in parentheses, may hold anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		child, _ := strconv.Atoi(filepath.Base(path))
		parents[child], _ = strconv.Atoi(fields[1])
		states[child] = fields[0]
	}
	n := 0
	for child, state := range states {
		if state != "Z" {
			continue
		}
		for p := parents[child]; p > 1; p = parents[p] {
			if p == pid {
				n++
				break
			}
		}
	}
	return n
}
