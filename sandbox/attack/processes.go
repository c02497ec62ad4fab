package attack

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// processRows are attacks on the init (process 1 of a pid namespace, in other
// tiers the parent's parent) and on the service.
func processRows() []Row {
	rows := []Row{
		ptraceRow("ptrace-attach", unix.PTRACE_ATTACH), ptraceRow("ptrace-seize", unix.PTRACE_SEIZE),
	}
	for _, file := range []string{"mem", "environ", "maps", "auxv", "syscall", "stack"} {
		rows = append(rows, Row{
			ID: "init-" + file, Stands: "D2, D7", Tries: "to read /proc/PID/" + file + " of its init",
			Expect: everywhere("refused EACCES | refused EPERM"),
			run:    func(*Targets) string { return read(fmt.Sprintf("/proc/%d/%s", initPID(), file)) },
		})
	}
	for _, link := range []string{"exe", "cwd", "root", "fd/0", "fd/3"} {
		rows = append(rows, Row{
			ID: "init-" + link, Stands: "D1, D2, CVE-2019-5736", Tries: "to open /proc/PID/" + link + " of its init",
			Expect: everywhere("refused EACCES"),
			run:    func(*Targets) string { return open(fmt.Sprintf("/proc/%d/%s", initPID(), link), unix.O_RDONLY) },
		})
	}
	return append(append(rows, reaperRows()...), serviceRows()...)
}

func ptraceRow(id string, request uintptr) Row {
	return Row{
		ID: id, Stands: "D7, CVE-2019-13272", Tries: "to trace its init", Expect: everywhere("refused EPERM"),
		run: func(*Targets) string {
			return trace(request, initPID())
		},
	}
}

// trace traces a process and lets it go on: the tracer ends at once.
func trace(request uintptr, pid int) string {
	verdict := calls{{number: unix.SYS_PTRACE, args: [6]uintptr{request, uintptr(pid)}}}.verdict("it is traced")
	if strings.HasPrefix(verdict, "ESCAPED") {
		_ = unix.Kill(pid, unix.SIGCONT)
	}
	return verdict
}

// initPID is the init as this box sees it: of a pid namespace the first
// process, else the parent of the reaper, which is the parent of this leader.
func initPID() int {
	if os.Getpid() < 64 {
		if name, err := os.ReadFile("/proc/1/comm"); err == nil && string(name) == "envapi-init\n" {
			return 1
		}
	}
	return parentOf(os.Getppid())
}

func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	var parent int
	for i := len(stat) - 1; i >= 0; i-- {
		if stat[i] == ')' {
			_, _ = fmt.Sscanf(string(stat[i+1:]), " %c %d", new(rune), &parent)
			break
		}
	}
	return parent
}

func reaperRows() []Row {
	return []Row{
		{
			ID: "init-exe-write", Stands: "D1, CVE-2019-5736", Tries: "to overwrite the program of its init", Expect: everywhere("refused EACCES"),
			run: func(*Targets) string { return open(fmt.Sprintf("/proc/%d/exe", initPID()), unix.O_WRONLY) },
		},
		{
			ID: "init-exe-chmod", Stands: "D1", Tries: "to change the mode of its init's program", Expect: everywhere("refused EACCES"),
			run: func(*Targets) string {
				return tried(unix.Chmod(fmt.Sprintf("/proc/%d/exe", initPID()), 0), "the mode is changed")
			},
		},
		{
			ID: "reaper-mem", Stands: "D7", Tries: "to write into the memory of its reaper, which is the init's",
			Expect: everywhere("refused EACCES | refused EPERM"),
			run:    func(*Targets) string { return open(fmt.Sprintf("/proc/%d/mem", os.Getppid()), unix.O_RDWR) },
		},
		{
			ID: "reaper-fd", Stands: "D7", Tries: "to open the init's socket through its reaper", Expect: everywhere("refused EACCES"),
			run: func(*Targets) string { return open(fmt.Sprintf("/proc/%d/fd/3", os.Getppid()), unix.O_RDWR) },
		},
		{
			ID: "reaper-tracer", Stands: "D13, D14", Tries: "to pass a stop off as its end, by having its reaper trace it",
			Expect: everywhere("harmless: it goes on"), run: traceMe,
		},
		{
			ID: "init-limits", Stands: "D7", Tries: "to lower the limits of its init", Expect: everywhere("refused EPERM"),
			run: func(*Targets) string {
				return tried(unix.Prlimit(initPID(), unix.RLIMIT_CORE, &unix.Rlimit{}, nil), "they are lowered")
			},
		},
		{
			ID: "init-signals", Stands: "D14", Tries: "to end or stop its init", run: signalInit,
			// Elsewhere the thread that starts commands is of their Landlock domain.
			Expect: Expect{Namespace: "refused EPERM | harmless: it lives on"},
		},
	}
}

// traceMe makes the parent the tracer, which is told then of every signal, and
// must let it go on.
func traceMe(*Targets) string {
	runtime.LockOSThread()
	if _, _, errno := unix.RawSyscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0); errno != 0 {
		return refused(errno)
	}
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGURG); err != nil { // nothing to a Go program
		return refused(err)
	}
	return harmless("it goes on")
}

// signalInit sends the init what would end or stop it, and looks whether it
// still is there. Outside of a pid namespace only whether it could is asked.
func signalInit(*Targets) string {
	init := initPID()
	if init != 1 {
		return signalThreads(init)
	}
	for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGSTOP, unix.SIGTSTP, unix.SIGSEGV, unix.SIGKILL} {
		if err := unix.Kill(init, sig); err != nil {
			return refused(err)
		}
	}
	return harmless("it lives on")
}

// signalThreads asks whether a signal could be sent to any thread of a process:
// kill(2) takes a thread's number too, and signals all of the process.
func signalThreads(pid int) string {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return refused(err)
	}
	verdict := "failed: it has no thread"
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		if verdict = tried(unix.Kill(tid, 0), "it can be signalled"); strings.HasPrefix(verdict, "ESCAPED") {
			return verdict
		}
	}
	return verdict
}

// serviceRows are attacks on the service, whose pid is told; in a pid
// namespace that number is nobody's, or somebody else's of the box.
func serviceRows() []Row {
	gone := func(outside, inside string, landlock int) Expect { return Expect{outside, outside, inside, landlock} }
	pid := func(t *Targets, file string) string { return fmt.Sprintf("/proc/%d/%s", t.PID, file) }
	return []Row{
		{
			ID: "service-mem", Stands: "D7", Tries: "to read the service's memory", Expect: gone("refused EACCES | refused EPERM", "refused ENOENT", 0),
			run: func(t *Targets) string { return open(pid(t, "mem"), unix.O_RDWR) },
		},
		{
			ID: "service-environ", Stands: "D2", Tries: "to read the service's variables", Expect: gone("refused EACCES | refused EPERM", "refused ENOENT", 0),
			run: func(t *Targets) string { return read(pid(t, "environ")) },
		},
		{
			ID: "service-root", Stands: "D7, CVE-2024-21626", Tries: "to reach the host's files through the service's root", Expect: gone("refused EACCES", "refused ENOENT", 0),
			run: func(t *Targets) string { return read(pid(t, "root/etc/hostname")) },
		},
		{
			ID: "service-fd", Stands: "D7", Tries: "to open a descriptor of the service", Expect: gone("refused EACCES", "refused ENOENT", 0),
			run: func(t *Targets) string { return open(pid(t, "fd/0"), unix.O_RDONLY) },
		},
		{
			ID: "service-signal", Stands: "D7, D14", Tries: "to signal the service", Expect: gone("refused EPERM", "refused ENOENT", 6),
			run: func(t *Targets) string { return signalThreads(t.PID) },
		},
		{
			ID: "service-pidfd-signal", Stands: "D7", Tries: "to signal the service by a pidfd", Expect: gone("refused EPERM", "refused ESRCH", 6), run: signalByPidfd,
		},
		{
			ID: "service-ptrace", Stands: "D7", Tries: "to trace the service", Expect: everywhere("refused EPERM"),
			run: func(t *Targets) string {
				return trace(unix.PTRACE_SEIZE, t.PID)
			},
		},
		{
			ID: "service-limits", Stands: "D7", Tries: "to change the service's limits", Expect: everywhere("refused EPERM"),
			run: func(t *Targets) string {
				return tried(unix.Prlimit(t.PID, unix.RLIMIT_CORE, &unix.Rlimit{}, nil), "they are changed")
			},
		},
		{
			ID: "service-oom", Stands: "D12", Tries: "to have the service killed first when memory runs out", Expect: gone("refused EACCES", "refused ENOENT", 1),
			run: func(t *Targets) string { return write(pid(t, "oom_score_adj"), "1000") },
		},
		{
			ID: "service-priority", Stands: "D12", Tries: "to slow the service down", Expect: gone("refused EPERM", "refused ESRCH", 0),
			run: func(t *Targets) string {
				now, err := unix.Getpriority(unix.PRIO_PROCESS, t.PID)
				if err != nil {
					return refused(err)
				}
				return tried(unix.Setpriority(unix.PRIO_PROCESS, t.PID, 20-now), "it can be set")
			},
		},
		{
			ID: "other-processes", Stands: "D7, D20", Tries: "to list processes of the host", Expect: Expect{Namespace: "harmless: only its own"}, run: listProcesses,
		},
	}
}

func signalByPidfd(t *Targets) string {
	fd, err := unix.PidfdOpen(t.PID, 0)
	if err != nil {
		return refused(err)
	}
	defer unix.Close(fd)
	return tried(unix.PidfdSendSignal(fd, 0, nil, 0), "it can be signalled")
}

func listProcesses(*Targets) string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return refused(err)
	}
	for _, e := range entries {
		if name, err := os.ReadFile("/proc/" + e.Name() + "/comm"); err == nil && string(name) == "kthreadd\n" {
			return escaped("the kernel's threads are there")
		}
	}
	if host, err := os.ReadFile("/proc/1/comm"); err != nil || string(host) != "envapi-init\n" {
		return escaped("process 1 is %q (%v)", host, err)
	}
	return harmless("only its own")
}
