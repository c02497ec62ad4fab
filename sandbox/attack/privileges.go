package attack

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sameNamespace says whether this is in the namespace that a link shows; not
// knowing counts as yes.
func sameNamespace(kind, host string) bool {
	own, err := os.Readlink("/proc/self/ns/" + kind)
	return err != nil || own == host
}

// privilegeRows are attacks that would become more than the box is.
func privilegeRows() []Row {
	rows := []Row{
		{ID: "uid", Stands: "no uid 0, the uid map", Tries: "to be root, or the service", Expect: Expect{User: "harmless: another", Namespace: "harmless: another"}, run: lookAtUID},
		{ID: "setuid", Stands: "no capabilities", Tries: "to become root", Expect: Expect{"refused EPERM", "refused EPERM", "refused EINVAL | refused EPERM", 0}, run: func(*Targets) string {
			return calls{{number: unix.SYS_SETUID, args: [6]uintptr{0}}}.verdict("it is root")
		}},
		{ID: "setgid", Stands: "no capabilities", Tries: "to take root's group", Expect: Expect{"refused EPERM", "refused EPERM", "refused EINVAL | refused EPERM", 0}, run: func(*Targets) string {
			return calls{{number: unix.SYS_SETGID, args: [6]uintptr{0}}}.verdict("it is in root's group")
		}},
		{ID: "setgroups", Stands: "no capabilities, CVE-2014-8989", Tries: "to drop the groups that take rights away", Expect: everywhere("refused EPERM"), run: func(*Targets) string {
			return calls{{number: unix.SYS_SETGROUPS, args: [6]uintptr{0, 0}}}.verdict("they are dropped")
		}},
		{ID: "setfsuid", Stands: "no capabilities", Tries: "to open files as root", Expect: everywhere("harmless: it stays what it is"), run: setFileUID},
		{ID: "groups", Stands: "the service's groups", Tries: "to have a group of the service's", Expect: Expect{User: "harmless: none", Namespace: ""}, run: findGroups},
		{ID: "capabilities", Stands: "capabilities", Tries: "to have a capability", Expect: everywhere("harmless: none"), run: findCapabilities},
		{ID: "bounding-set", Stands: "bounding set, CVE-2022-29162 of runc", Tries: "to have a capability to gain by executing", Expect: Expect{User: "harmless: none", Namespace: "harmless: none"}, run: findBounding},
		{ID: "capset", Stands: "capabilities", Tries: "to take a capability", Expect: everywhere("refused EPERM"), run: takeCapability},
		{ID: "ambient", Stands: "capabilities", Tries: "to raise an ambient capability", Expect: everywhere("refused EPERM"), run: func(*Targets) string {
			return calls{{number: unix.SYS_PRCTL, args: [6]uintptr{unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN}}}.verdict("it is raised")
		}},
		{ID: "no-new-privs", Stands: "no_new_privs", Tries: "to gain privileges by executing", Expect: everywhere("harmless: none can be gained"), run: lookAtNoNewPrivs},
		{ID: "undo-no-new-privs", Stands: "no_new_privs", Tries: "to take no_new_privs back", Expect: everywhere("refused EINVAL | refused EPERM"), run: func(*Targets) string {
			return calls{{number: unix.SYS_PRCTL, args: [6]uintptr{unix.PR_SET_NO_NEW_PRIVS, 0}}}.verdict("it is taken back")
		}},
		{ID: "seccomp-mode", Stands: "seccomp as a whole", Tries: "to run without a filter", Expect: everywhere("harmless: it has a filter"), run: lookAtFilter},
		{ID: "dumpable-core", Stands: "RLIMIT_CORE", Tries: "to leave a core dump, which a program of the host's would take", Expect: everywhere("harmless: none is made"), run: dumpCore},
	}
	return append(append(rows, setuidRows()...), limitRows()...)
}

func lookAtUID(*Targets) string {
	uid := os.Getuid()
	if uid == 0 || os.Geteuid() == 0 || os.Getgid() == 0 || os.Getegid() == 0 {
		return escaped("it is root")
	}
	const all = "4294967295" // the map of a namespace that is not a box's own
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		data, err := os.ReadFile(file)
		if err != nil {
			return refused(err)
		}
		ids := strings.Fields(string(data))
		own := len(ids) == 3 && ids[0] != "0" && ids[1] != "0" && ids[2] == "1"
		if !own && (len(ids) != 3 || ids[2] != all) {
			return escaped("it can be others: %s", strings.TrimSpace(string(data)))
		}
	}
	return harmless("another")
}

func setFileUID(*Targets) string {
	before, _, _ := syscall.RawSyscall(unix.SYS_SETFSUID, ^uintptr(0), 0, 0)
	syscall.RawSyscall(unix.SYS_SETFSUID, 0, 0, 0)
	after, _, _ := syscall.RawSyscall(unix.SYS_SETFSUID, ^uintptr(0), 0, 0)
	if after != before {
		return escaped("it is %d", after)
	}
	return harmless("it stays what it is")
}

func findGroups(*Targets) string {
	groups, err := os.Getgroups()
	if err != nil {
		return refused(err)
	}
	for _, g := range groups {
		if g != os.Getgid() {
			return escaped("it is in group %d", g)
		}
	}
	return harmless("none")
}

// status gives a field of /proc/self/status.
func status(name string) string {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return "absent"
}

func findCapabilities(*Targets) string {
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		if value := status(set); value != "0000000000000000" {
			return escaped("%s is %s", set, value)
		}
	}
	return harmless("none")
}

func findBounding(*Targets) string {
	if value := status("CapBnd"); value != "0000000000000000" {
		return escaped("it is %s", value)
	}
	return harmless("none")
}

func takeCapability(*Targets) string {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	all := [2]unix.CapUserData{{Effective: ^uint32(0), Permitted: ^uint32(0)}, {Effective: 1, Permitted: 1}}
	return calls{{number: unix.SYS_CAPSET, args: [6]uintptr{pointer(header), pointer(all)}}}.verdict("it has all")
}

func lookAtNoNewPrivs(*Targets) string {
	if value := status("NoNewPrivs"); value != "1" {
		return escaped("no_new_privs is %s", value)
	}
	return harmless("none can be gained")
}

func lookAtFilter(*Targets) string {
	if value := status("Seccomp"); value != "2" {
		return escaped("its mode is %s", value)
	}
	return harmless("it has a filter")
}

func dumpCore(*Targets) string {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return refused(err)
	}
	if limit.Max != 0 {
		return escaped("RLIMIT_CORE is %d", limit.Max)
	}
	return harmless("none is made")
}

// setuidPrograms are what systems have that runs as another.
var setuidPrograms = []string{"/bin/su", "/usr/bin/sudo", "/usr/bin/passwd", "/usr/bin/mount", "/usr/bin/chsh", "/usr/bin/newuidmap", "/usr/bin/pkexec", "/usr/bin/newgrp"}

func setuidRows() []Row {
	return []Row{
		{ID: "setuid-programs", Stands: "D11, nosuid, no_new_privs, CVE-2021-4034", Tries: "to become another by a program of the system's", Expect: everywhere("harmless: none changes who it is"), run: runSetuid},
		{ID: "setuid-own", Stands: "D11", Tries: "to become another by a setuid file of its own", Expect: everywhere("harmless: it is of its own uid"), run: makeSetuid},
		{ID: "setuid-mounts", Stands: "nosuid", Tries: "to find a mount that obeys setuid", Expect: Expect{Namespace: "harmless: none"}, run: func(*Targets) string { return findMount("nosuid", nil) }},
		{ID: "device-mounts", Stands: "nodev", Tries: "to find a mount, but those in /dev, that obeys device nodes", Expect: Expect{Namespace: "harmless: none"}, run: func(*Targets) string {
			return findMount("nodev", func(point string) bool { return strings.HasPrefix(point, "/dev/") })
		}},
		{ID: "preload", Stands: "D11, CVE-2010-3856", Tries: "to load a library into a setuid program", Expect: everywhere("harmless: none changes who it is"), run: runSetuid},
		{ID: "memfd", Stands: "memfd execution", Tries: "to execute a program without a file, for more than it is", Expect: everywhere("harmless: it is as confined as any"), run: executeMemory},
	}
}

// runSetuid starts system programs that are setuid, stopped as they execute, and
// looks as whom they run.
func runSetuid(*Targets) string {
	for _, path := range setuidPrograms {
		var stat unix.Stat_t
		if unix.Stat(path, &stat) != nil || stat.Mode&unix.S_ISUID == 0 {
			continue
		}
		uid, err := uidWhenExecuted(path)
		if err == nil && uid != os.Getuid() {
			return escaped("%s runs as %d", path, uid)
		}
	}
	return harmless("none changes who it is")
}

// uidWhenExecuted executes a program that reads from a pipe which never says
// anything, or ends by itself, and reads its effective uid from /proc.
func uidWhenExecuted(path string) (int, error) {
	reading, writing, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer reading.Close()
	defer writing.Close()
	p, err := os.StartProcess(path, []string{path, "--help"}, &os.ProcAttr{Files: []*os.File{reading, writing, writing}, Env: []string{"LD_PRELOAD=/proc/self/cwd/library.so"}})
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = p.Kill()
		_, _ = p.Wait()
	}()
	var stat unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d", p.Pid), &stat); err != nil {
		return 0, err
	}
	return int(stat.Uid), nil
}

func makeSetuid(*Targets) string {
	return onOwnFile(func(path string) string {
		if err := unix.Chmod(path, 0o6755); err != nil {
			return refused(err)
		}
		var stat unix.Stat_t
		if err := unix.Stat(path, &stat); err != nil {
			return refused(err)
		}
		if int(stat.Uid) != os.Getuid() {
			return escaped("it is of uid %d", stat.Uid)
		}
		return harmless("it is of its own uid")
	})
}

// findMount looks for a mount without an option.
func findMount(option string, except func(point string) bool) string {
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return refused(err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || except != nil && except(fields[1]) {
			continue
		}
		if !strings.Contains(","+fields[3]+",", ","+option+",") {
			return escaped("%s is without %s", fields[1], option)
		}
	}
	return harmless("none")
}

// executeMemory executes a copy of this program from memory, which does the row
// that looks for a filter.
func executeMemory(*Targets) string {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return refused(err)
	}
	fd, err := unix.MemfdCreate("x", 0)
	if err != nil {
		return refused(err)
	}
	memory := os.NewFile(uintptr(fd), "x")
	defer memory.Close()
	if _, err := memory.Write(program); err != nil {
		return refused(err)
	}
	path := fmt.Sprintf("/proc/self/fd/%d", fd)
	reading, writing, err := os.Pipe()
	if err != nil {
		return refused(err)
	}
	defer reading.Close()
	args := append(os.Args[:max(len(os.Args)-1, 1):max(len(os.Args)-1, 1)], "seccomp-mode")
	p, err := os.StartProcess(path, args, &os.ProcAttr{Files: []*os.File{nil, writing, nil}, Env: os.Environ()}) //nolint:gosec // this very program
	_ = writing.Close()
	if err != nil {
		return refused(err)
	}
	said := make([]byte, 256)
	n, _ := reading.Read(said)
	_, _ = p.Wait()
	if string(said[:n]) != harmless("it has a filter")+"\n" {
		return escaped("it says %q", said[:n])
	}
	return harmless("it is as confined as any")
}
