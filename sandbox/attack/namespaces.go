package attack

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kinds are the kinds of namespaces.
var kinds = []struct {
	name string
	flag uintptr
}{
	{"user", unix.CLONE_NEWUSER},
	{"mnt", unix.CLONE_NEWNS},
	{"pid", unix.CLONE_NEWPID},
	{"net", unix.CLONE_NEWNET},
	{"ipc", unix.CLONE_NEWIPC},
	{"uts", unix.CLONE_NEWUTS},
	{"cgroup", unix.CLONE_NEWCGROUP},
	{"time", unix.CLONE_NEWTIME},
}

// namespaceRows are attacks that make or enter namespaces: with a new user
// namespace a program has every capability in it, and most of the kernel's
// local holes begin there.
func namespaceRows() []Row {
	var rows []Row
	for _, k := range kinds {
		rows = append(rows, Row{
			ID: "unshare-" + k.name, Stands: "D5, CVE-2022-0185, CVE-2023-32233", Tries: "to unshare a " + k.name + " namespace",
			Expect: everywhere("refused EPERM"), run: func(*Targets) string {
				return calls{{number: unix.SYS_UNSHARE, args: [6]uintptr{k.flag}}}.verdict("it has one")
			},
		}, Row{
			ID: "setns-" + k.name, Stands: "D5", Tries: "to enter the init's " + k.name + " namespace",
			Expect: everywhere("refused EPERM"), run: func(*Targets) string {
				return setns("/proc/1/ns/"+k.name, k.flag)
			},
		})
		if k.name != "time" { // clone(2) takes that bit for the signal of the child's end
			rows = append(rows, Row{
				ID: "clone-" + k.name, Stands: "D5, CVE-2022-0185", Tries: "to clone into a new " + k.name + " namespace",
				Expect: everywhere("refused EPERM"), run: func(*Targets) string {
					return tried(calls{}.inChild(k.flag|signalled), "a child has one")
				},
			})
		}
	}
	return append(rows, entryRows()...)
}

// setns enters a namespace by its file, or where that cannot be opened by a
// descriptor that is none: the filter must not let it come to that.
func setns(file string, flag uintptr) string {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		fd = -1
	}
	defer unix.Close(fd)
	return calls{{number: unix.SYS_SETNS, args: [6]uintptr{uintptr(fd), flag}}}.verdict("it is in the namespace of " + file)
}

func entryRows() []Row {
	return []Row{
		{
			ID: "unshare-user-mount", Stands: "D5, Codex and bubblewrap inside of a user namespace", Tries: "to unshare user and mount namespaces in one call",
			Expect: everywhere("refused EPERM"), run: func(*Targets) string {
				return calls{
					{number: unix.SYS_UNSHARE, args: [6]uintptr{unix.CLONE_NEWUSER | unix.CLONE_NEWNS}},
					{number: unix.SYS_MOUNT, args: [6]uintptr{text("x"), text("/tmp"), text("tmpfs"), 0, 0}},
				}.verdict("it has mounted")
			},
		},
		{
			ID: "unshare-high-bits", Stands: "D5", Tries: "to unshare with bits set above the 32 that the kernel reads",
			Expect: everywhere("refused EPERM"), run: func(*Targets) string {
				return calls{{number: unix.SYS_UNSHARE, args: [6]uintptr{unix.CLONE_NEWUSER | 1<<40}}}.verdict("it has one")
			},
		},
		{
			ID: "clone3", Stands: "D5, CVE-2021-20177's kind: arguments that no filter can read", Tries: "to clone by a structure",
			Expect: everywhere("refused ENOSYS"), run: func(*Targets) string { return tried(clone3(0), "a child was made") },
		},
		{
			ID: "clone3-user", Stands: "D5", Tries: "to clone into a user namespace by a structure",
			Expect: everywhere("refused ENOSYS"), run: func(*Targets) string { return tried(clone3(unix.CLONE_NEWUSER), "a child was made") },
		},
		{
			ID: "setns-pidfd", Stands: "D5", Tries: "to enter all namespaces of the init by a pidfd",
			Expect: everywhere("refused EPERM"), run: func(*Targets) string {
				fd, err := unix.PidfdOpen(1, 0)
				if err != nil {
					fd = -1
				}
				defer unix.Close(fd)
				return calls{{number: unix.SYS_SETNS, args: [6]uintptr{uintptr(fd), unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUSER}}}.verdict("it is there")
			},
		},
		{
			ID: "setns-service", Stands: "D5", Tries: "to enter the service's mount namespace",
			Expect: everywhere("refused EPERM"), run: func(t *Targets) string {
				return setns(fmt.Sprintf("/proc/%d/ns/mnt", t.PID), unix.CLONE_NEWNS)
			},
		},
		{
			ID: "uid-map", Stands: "D5, CVE-2018-18955", Tries: "to map more uids into the namespace that it is in",
			Expect: Expect{"refused EPERM | refused EACCES", "refused EPERM | refused EACCES", "refused EPERM | refused EACCES", 0}, run: func(*Targets) string {
				return write("/proc/self/uid_map", "0 0 1")
			},
		},
		{
			ID: "namespaces-apart", Stands: "each namespace flag", Tries: "to be in a namespace of the host's",
			Expect: Expect{Namespace: "harmless: none is the host's"}, run: apart,
		},
	}
}

// apart looks for a namespace of the host's, of those that Targets tells.
func apart(t *Targets) string {
	for file, host := range map[string]string{"net": t.Network, "mnt": t.Mount} {
		own, err := os.Readlink("/proc/self/ns/" + file)
		if err != nil {
			return refused(err)
		}
		if own == host {
			return escaped("%s is the host's", file)
		}
	}
	return harmless("none is the host's")
}

// clone3 makes a child by clone3(2), which ends at once.
func clone3(flags uint64) error {
	structure := struct{ flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls uint64 }{flags: flags, exitSignal: uint64(unix.SIGCHLD)}
	return calls{{number: unix.SYS_CLONE3, args: [6]uintptr{pointer(structure), unsafe.Sizeof(structure)}}}.inChild(signalled)
}
