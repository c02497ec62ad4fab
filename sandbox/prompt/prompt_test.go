package prompt_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"go.uber.org/goleak"

	"envapi/sandbox/prompt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func itoa(i int) string { return strconv.Itoa(i) }

// python is a program in Python.
func python(lines string) []string { return []string{"python3", "-c", lines} }

func bash(script string) []string { return []string{"bash", "--norc", "-c", script} }

// asking are programs that wait for what is typed, in every way that there is.
var asking = []struct {
	name string
	argv []string
}{
	{"cat", []string{"cat"}},
	{"bash: read", bash("read x")},
	{"bash: read from /dev/tty", bash("read x </dev/tty")},
	{"bash: read with a time limit", bash("read -t 300 x")},
	{"bash: select", bash("select x in a b; do :; done")},
	{"bash: interactive", []string{"bash", "--norc", "-i"}},
	{"bash: a job of an interactive shell", []string{"bash", "--norc", "-ic", "cat; :"}},
	{"a pipeline", bash("cat | cat; :")},
	{"a child of a child", bash("(:; bash -c 'cat; :'; :); :")},
	{"beside children that do not read", bash("for i in 1 2 3 4 5; do sleep 300 & done; read x; :")},
	{"python: input()", python("input('name? ')")},
	{"python: interactive", []string{"python3", "-q", "-i"}},
	{"python: getpass", python("import getpass; getpass.getpass()")},
	{"python: select", python("import select; select.select([0, 1], [], [])")},
	{"python: poll", python("import select; p = select.poll(); p.register(0, select.POLLIN); p.poll()")},
	{"python: poll, again and again", python("import select\np = select.poll(); p.register(0, select.POLLIN)\nwhile not p.poll(100): pass")},
	{"python: poll after many others", python("import select, os\np = select.poll()\nfor i in range(300): p.register(os.pipe()[0], select.POLLIN)\np.register(os.open('/dev/tty', os.O_RDONLY), select.POLLIN); p.poll()")},
	{"python: epoll", python("import select; p = select.epoll(); p.register(0, select.EPOLLIN); p.poll()")},
	{"python: asyncio", python("import asyncio\nasync def main():\n    asyncio.get_running_loop().add_reader(0, print)\n    await asyncio.sleep(300)\nasyncio.run(main())")},
	{"python: a thread of many", python("import threading, time\nfor i in range(20): threading.Thread(target=time.sleep, args=(300,), daemon=True).start()\nthreading.Thread(target=input).start()")},
	{"python: readv", python("import os; os.readv(0, [bytearray(9)])")},
	{"python: splice", python("import os; r, w = os.pipe(); os.splice(0, w, 9) if hasattr(os, 'splice') else input()")},
	{"python: a descriptor of another number", python("import os; os.dup2(0, 77); os.close(0); os.read(77, 9)")},
	{"python: the terminal by its name", python("import os; f = os.open(os.ttyname(0), os.O_RDONLY); os.close(0); os.read(f, 9)")},
	{"a pager", []string{"less", "/etc/services"}},
	{"node: interactive", []string{"node", "-i"}},
	{"node: a question", []string{"node", "-e", "require('readline').createInterface({input: process.stdin, output: process.stdout}).question('? ', console.log)"}},
	{"vim", []string{"vim", "-u", "NONE"}},
	{"a terminal that is raw", bash("stty raw -echo; cat")},
}

func TestWhoWaitsForInputIsSeen(t *testing.T) {
	for _, c := range asking {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			seat(t, c.argv...).waits()
		})
	}
}

// busy are programs that do something else, and write "ready" first.
var busy = []struct {
	name string
	argv []string
}{
	{"sleep", bash("echo ready; sleep 300")},
	{"sleep in the shell's own place", bash("echo ready; exec sleep 300")},
	{"it computes", bash("echo ready; while :; do :; done")},
	{"python: it computes", python("print('ready', flush=True)\nwhile True: pass")},
	{"it waits for a pipe", bash("mkfifo p; echo ready; cat <p")},
	{"it waits for a pipe that a sleeper holds", bash("echo ready; sleep 300 | cat")},
	{"wait", bash("sleep 300 & echo ready; wait")},
	{"its input is empty", bash("echo ready; exec sleep 300 </dev/null")},
	{"a background job reads", bash("set -m; cat & echo ready; sleep 300; :")},
	{"a background job reads the terminal by name", bash("set -m; cat </dev/tty & echo ready; sleep 300; :")},
	{"a background job selects the terminal", bash("set -m; python3 -c 'import select; print(\"ready\", flush=True); select.select([0], [], [])' & sleep 300; :")},
	{"it writes what nobody takes", bash("mkfifo p; exec 3<>p; echo ready; exec cat /dev/zero >&3")},
	{"python: a thread waits for a pipe", python("import os, threading\nr, w = os.pipe()\nthreading.Thread(target=os.read, args=(r, 1)).start()\nprint('ready', flush=True)")},
	{"python: select of a pipe", python("import os, select\nr, w = os.pipe()\nprint('ready', flush=True)\nselect.select([r], [], [])")},
	{"python: epoll of a pipe", python("import os, select\nr, w = os.pipe()\np = select.epoll(); p.register(r)\nprint('ready', flush=True)\np.poll()")},
	{"python: poll of a terminal for something else", python("import select\np = select.poll(); p.register(0, select.POLLPRI)\nprint('ready', flush=True)\np.poll()")},
	{"python: epoll of a terminal for something else", python("import select\np = select.epoll(); p.register(0, select.EPOLLPRI)\nprint('ready', flush=True)\np.poll()")},
	{"python: it looks at the terminal without waiting", python("import select, time\nprint('ready', flush=True)\nwhile not select.select([0], [], [], 0)[0]: time.sleep(.01)")},
	{"python: it looks at the terminal all the time", python("import select\nprint('ready', flush=True)\nwhile not select.select([0], [], [], 0)[0]: pass")},
	{"python: it reads another terminal", python("import os\na, b = os.openpty()\nprint('ready', flush=True)\nos.read(b, 1)")},
	{"python: the other end of another terminal", python("import os\na, b = os.openpty()\nprint('ready', flush=True)\nos.read(a, 1)")},
}

func TestWhoDoesNotWaitForInputIsNotSaidTo(t *testing.T) {
	for _, c := range busy {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := seat(t, c.argv...)
			d.await("ready")
			d.never()
		})
	}
}

// TestAPasswordPrompt: of a real program, which opens /dev/tty for it.
func TestAPasswordPrompt(t *testing.T) {
	d := seat(t, "openssl", "passwd", "-5", "-salt", "x")
	d.await("Password:")
	d.waits()
	d.send("secret\n")
	d.await("$5$x$")
}

// TestAnAnswerEndsTheWait: a program that got what it waited for is not said to
// wait any more, and does again at its next question.
func TestAnAnswerEndsTheWait(t *testing.T) {
	d := seat(t, bash("read x; echo got $x; mkfifo p; echo ready; read y <p; read z; echo got $z")...)
	d.waits()
	d.send("one\n")
	d.await("ready")
	d.never()
	if err := os.WriteFile(filepath.Join(d.cmd.Dir, "p"), []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	d.waits()
	d.send("two\n")
	d.await("got two")
}

// TestAHalfLineIsNoAnswer: a terminal that gives whole lines keeps it.
func TestAHalfLineIsNoAnswer(t *testing.T) {
	d := seat(t, bash("read x; echo got $x")...)
	d.waits()
	d.send("half")
	d.await("half")
	d.waits()
	d.send("\n")
	d.await("got half")
}

// TestAStoppedReaderDoesNotWaitForInput, but to be continued.
func TestAStoppedReaderDoesNotWaitForInput(t *testing.T) {
	d := seat(t, "cat")
	d.waits()
	d.signal(syscall.SIGSTOP)
	d.eventually("it is stopped", func() bool { return d.state() == 'T' })
	d.never()
	d.signal(syscall.SIGCONT)
	d.waits()
}

// TestAShellOfCommands: a shell that reads its commands from a pipe does not read
// the terminal, and what it runs does.
func TestAShellOfCommands(t *testing.T) {
	d := seat(t, bash("mkfifo p; exec 9<>p; echo ready; exec bash --norc --noediting -i <&9 2>/dev/null")...)
	d.await("ready")
	p, err := os.OpenFile(filepath.Join(d.cmd.Dir, "p"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	run := func(command string) {
		t.Helper()
		if _, err := p.WriteString(command + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	run("echo up")
	d.await("up")
	d.never()
	if err := os.WriteFile(filepath.Join(d.cmd.Dir, "f"), []byte("read x; echo got $x"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(". ./f </dev/tty")
	d.waits()
	d.send("it\n")
	d.await("got it")
	run("cat </dev/tty")
	d.waits()
	d.send("\x04")
	run("echo again; sleep 300")
	d.await("again")
	d.never()
}

// TestATerminalWithoutAnybody: nobody reads it.
func TestATerminalWithoutAnybody(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	terminal, err := prompt.New(master, slave, prompt.NewTurns())
	if err != nil {
		t.Fatal(err)
	}
	look := func() {
		t.Helper()
		if reading, known := terminal.Reading(t.Context()); reading || !known {
			t.Errorf("got %v, %v", reading, known)
		}
	}
	look()
	slave.Close()
	look()
	master.Close()
	if reading, known := terminal.Reading(t.Context()); reading || known {
		t.Errorf("a closed one: got %v, %v", reading, known)
	}
}

// TestTerminalsThatNobodyAsksAboutCostNothing: nothing looks at them by itself.
func TestTerminalsThatNobodyAsksAboutCostNothing(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	terminals := make([]*prompt.Terminal, 0, 1000)
	before := runtime.NumGoroutine()
	for range cap(terminals) {
		terminal, err := prompt.New(master, slave, prompt.NewTurns())
		if err != nil {
			t.Fatal(err)
		}
		terminals = append(terminals, terminal)
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d terminals have %d goroutines", len(terminals), after-before)
	}
}

func TestWhatIsNoTerminalIsRefused(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := prompt.New(f, f, prompt.NewTurns()); err == nil {
		t.Error("a file was taken for a terminal")
	}
}

func TestALookEndsWithItsContext(t *testing.T) {
	d := seat(t, "cat")
	d.waits()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond) // two looks are 50 ms apart
	defer cancel()
	if reading, known := d.Reading(ctx); reading || known {
		t.Errorf("got %v, %v", reading, known)
	}
	d.waits()
}

// TestWhoCannotBeLookedInto: as a user, of a program that is not dumpable only a
// prompt for a password is seen; else it is said that it is not known.
func TestWhoCannotBeLookedInto(t *testing.T) {
	const hide = "import ctypes, getpass, time\nassert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0\nprint('ready', flush=True)\n"
	t.Run("a password", func(t *testing.T) {
		d := seat(t, python(hide+"getpass.getpass()")...)
		d.await("assword:")
		d.waits()
	})
	for name, does := range map[string]string{
		"input": "input()", "sleep": "time.sleep(300)",
		"it computes without echo": "import os; os.system('stty -echo'); print('set', flush=True)\nwhile True: pass",
	} {
		t.Run(name, func(t *testing.T) {
			d := seat(t, python(hide+does)...)
			d.await("ready")
			if asRoot() {
				return // who sees all of it, as the other tests show
			}
			if does[0:6] == "import" {
				d.await("set")
			}
			for range 20 {
				if reading, known := d.Reading(t.Context()); reading || known {
					t.Errorf("got %v, %v", reading, known)
				}
			}
		})
	}
}
