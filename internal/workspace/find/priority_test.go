package find_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/find"
)

// nice is the priority of the calling thread as nice(1) has it.
func nice(t *testing.T) int {
	t.Helper()
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
	if err != nil {
		t.Fatal(err)
	}
	return 20 - raw
}

func TestAThreadThatSearchesStandsBackAndIsUsedForNothingElse(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, threads := nice(t), make(chan int)
	go func() {
		find.StandBack()
		if got := nice(t); got != min(own+5, 19) {
			t.Errorf("it is %d, where others are %d", got, own)
		}
		threads <- unix.Gettid()
	}()
	path := fmt.Sprintf("/proc/self/task/%d", <-threads)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the thread goes on")
		}
	}
	if got := nice(t); got != own {
		t.Errorf("another thread is %d, and was %d", got, own)
	}
}

// TestTheSearchesOfAnAccountShareItsProcessors: with all of them taken, one comes to its
// end by the time that it has, and another account's is whole.
func TestTheSearchesOfAnAccountShareItsProcessors(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{"file": "needle", "in/another": "needle"})
	search := func(account string, within time.Duration) core.SearchResult {
		for ; ; within *= 2 { // it may be over before the search begins
			ctx, cancel := context.WithTimeout(caller(t.Context(), account), within)
			found, err := f.finder.Search(ctx, core.SearchQuery{Pattern: "needle", Limit: 10, MaxBytes: 1000})
			cancel()
			switch {
			case err == nil:
				return found
			case within > time.Minute:
				t.Fatal(err)
			}
		}
	}
	if found := search("busy", time.Minute); found.TotalMatches != 2 || found.Truncated != "" {
		t.Fatalf("got %+v", found)
	}
	crowd(t, find.Processors, "busy", runtime.NumCPU())
	if found := search("other", time.Minute); found.TotalMatches != 2 || found.Truncated != "" {
		t.Errorf("another account's gives %+v", found)
	}
	if found := search("busy", 50*time.Millisecond); found.Truncated != "time" {
		t.Errorf("it has a processor more: %+v", found)
	}
}
