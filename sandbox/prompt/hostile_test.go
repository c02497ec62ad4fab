package prompt_test

import (
	"runtime"
	"testing"
	"time"

	"envapi/sandbox/prompt"
)

// hostile are programs that want a look to be long, or to believe what is not so.
var hostile = []struct {
	name    string
	program string
}{
	{"more threads than are looked at", `
import threading, time
threading.stack_size(64 << 10)
for i in range(1200):
    threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
print('ready', flush=True); time.sleep(300)`},
	{"hundreds of children", `
import os, time
for i in range(400):
    if os.fork() == 0: time.sleep(300); os._exit(0)
print('ready', flush=True); time.sleep(300)`},
	{"a set for poll whose memory is gone", `
import ctypes, mmap, struct, threading, time
c = ctypes.CDLL(None, use_errno=True)
c.mmap.restype = ctypes.c_void_p
a = c.mmap(None, ctypes.c_size_t(4096), 3, 0x22, -1, ctypes.c_long(0))
ctypes.memmove(a, struct.pack('ihh', 0, 0x2, 0), 8)
threading.Thread(target=lambda: c.poll(ctypes.c_void_p(a), ctypes.c_ulong(1), 300000)).start()
time.sleep(.2); c.munmap(ctypes.c_void_p(a), ctypes.c_size_t(4096))
print('ready', flush=True)`},
	{"select of a set of no size", `
import ctypes
print('ready', flush=True)
ctypes.CDLL(None).select(0, ctypes.c_void_p(1), None, None, None)`},
	{"an epoll of thousands", `
import os, select
import resource
n = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
p = select.epoll(); r, w = os.pipe()
for i in range(min(n, 10000) - 100): p.register(os.dup(r), select.EPOLLIN)
print('ready', flush=True); p.poll()`},
	{"many who wait for an epoll of thousands", `
import os, select, threading
import resource
threading.stack_size(64 << 10)
n = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
p = select.epoll(); r, w = os.pipe()
for i in range(min(n, 10000) - 100): p.register(os.dup(r), select.EPOLLPRI)
for i in range(150): threading.Thread(target=p.poll, daemon=True).start()
print('ready', flush=True); p.poll()`},
	{"an epoll of epolls", `
import select
a = [select.epoll() for i in range(4)]
for x, y in zip(a, a[1:]): x.register(y.fileno(), select.EPOLLIN)
print('ready', flush=True); a[0].poll()`},
	{"a read of what is no descriptor of a terminal but of its rank", `
import os
r, w = os.pipe(); os.dup2(r, 0)
print('ready', flush=True); os.read(0, 1)`},
	{"a name that reads like a state", `
import ctypes, time
ctypes.CDLL(None).prctl(15, b') S 1 1 1 (', 0, 0, 0)
print('ready', flush=True); time.sleep(300)`},
}

func TestAHostileProgramIsNeitherBelievedNorDear(t *testing.T) {
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			d := seat(t, "python3", "-c", c.program)
			d.await("ready")
			runtime.LockOSThread() // whose time it is
			defer runtime.UnlockOSThread()
			best := time.Hour
			for range 5 {
				begin := prompt.Used()
				if s := d.Look(); s.Reading {
					t.Error("it is said to wait for input")
				}
				best = min(best, prompt.Used()-begin)
			}
			// After 50 ms a look is given up, once what it is at is done.
			if best > 100*time.Millisecond {
				t.Errorf("a look took %v", best)
			}
			t.Logf("a look: %v", best)
		})
	}
}

// TestLooksThatTakeLongAreSeldom: whatever a program does to make them long, and on
// however many terminals, they take at most a twentieth of a core.
func TestLooksThatTakeLongAreSeldom(t *testing.T) {
	turns := prompt.NewTurns()
	d, other := seatAmong(t, turns, "python3", "-c", hostile[4].program), seatAmong(t, turns, "sleep", "300")
	d.await("ready")
	runtime.LockOSThread() // whose time it is
	defer runtime.UnlockOSThread()
	least := time.Hour
	for range 5 {
		before := prompt.Used()
		d.Look()
		least = min(least, prompt.Used()-before)
	}
	for _, next := range []*desk{d, other} {
		d.Reading(t.Context())
		begin := time.Now()
		next.Reading(t.Context())
		if all := time.Since(begin); all < 10*least {
			t.Errorf("a look that takes %v was followed by one after %v", least, all)
		}
	}
}

// TestOneEpollIsListedAtATime: what the kernel takes for it may be hundreds of
// megabytes.
func TestOneEpollIsListedAtATime(t *testing.T) {
	d := seat(t, "python3", "-c", "import select\np = select.epoll(); p.register(0, select.EPOLLIN)\nprint('ready', flush=True)\np.poll()")
	d.await("ready")
	d.eventually("it is seen", func() bool { return d.Look().Reading })
	prompt.WhileEpollIsListed(func() {
		if s := d.Look(); s.Known || s.Reading {
			t.Errorf("got %+v", s)
		}
	})
}

// TestWhatIsTooMuchIsNotKnown: not said to be idle, either.
func TestWhatIsTooMuchIsNotKnown(t *testing.T) {
	d := seat(t, "python3", "-c", hostile[0].program)
	d.await("ready")
	if s := d.Look(); s.Known || s.Reading {
		t.Errorf("got %+v of %d files", s, prompt.Files)
	}
}
