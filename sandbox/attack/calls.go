package attack

import (
	"cmp"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// plain is an attack that is one system call, which the filter must refuse
// before the kernel looks at it. Its arguments are such that the kernel would
// do it, or look at it for as long as it can for an ordinary user.
type plain struct {
	id, stands, tries string
	number            uintptr
	args              [6]uintptr
	errno             string // "" is EPERM
}

// scratch is memory for calls that want to write or read some.
var scratch [4096]byte

func address(offset int) uintptr { return uintptr(unsafe.Pointer(&scratch[offset])) }

// arguments keeps what calls have the address of alone.
var arguments []any

// pointer gives the address of a copy that stays where it is.
func pointer[T any](v T) uintptr {
	p := &v
	arguments = append(arguments, p)
	return uintptr(unsafe.Pointer(p))
}

// text gives the address of a string with a NUL behind it.
func text(s string) uintptr {
	b := append([]byte(s), 0)
	arguments = append(arguments, b)
	return uintptr(unsafe.Pointer(&b[0]))
}

// Arguments that stand for a descriptor or a keyring.
const (
	workingDirectory = ^uintptr(99) // AT_FDCWD
	processKeyring   = ^uintptr(1)  // KEY_SPEC_PROCESS_KEYRING
	sessionKeyring   = ^uintptr(2)  // KEY_SPEC_SESSION_KEYRING
	none             = ^uintptr(0)  // no descriptor
)

func plainCalls() []plain {
	return slices.Concat(kernelCalls(), systemCalls(), peekingCalls(), extraCalls())
}

// kernelCalls are doors to large and young parts of the kernel.
func kernelCalls() []plain {
	return []plain{
		{"io_uring_setup", "D6, CVE-2022-29582, CVE-2023-2598", "to make an io_uring, whose operations no filter sees", unix.SYS_IO_URING_SETUP, [6]uintptr{1, address(0)}, ""},
		{"io_uring_enter", "D6", "to drive an io_uring", unix.SYS_IO_URING_ENTER, [6]uintptr{none}, ""},
		{"io_uring_register", "D6", "to register memory with an io_uring", unix.SYS_IO_URING_REGISTER, [6]uintptr{none}, ""},
		{"keyctl", "D6, CVE-2016-0728", "to get at the session keyring, which no namespace keeps apart", unix.SYS_KEYCTL, [6]uintptr{0, sessionKeyring, 1}, ""},
		{"add_key", "D6, CVE-2016-0728", "to add a key", unix.SYS_ADD_KEY, [6]uintptr{text("user"), text("x"), text("y"), 1, processKeyring}, ""},
		{"request_key", "D6", "to have the kernel start a program for a key", unix.SYS_REQUEST_KEY, [6]uintptr{text("user"), text("x"), 0, 0}, ""},
		{"userfaultfd", "D6, most exploits of races", "to stop the kernel in the middle of a copy", unix.SYS_USERFAULTFD, [6]uintptr{1}, ""},
		{"bpf", "D6, CVE-2021-3490, CVE-2022-23222", "to load a program into the kernel", unix.SYS_BPF, [6]uintptr{0, address(0), 64}, ""},
		{"perf_event_open", "D6, CVE-2013-2094", "to watch the kernel", unix.SYS_PERF_EVENT_OPEN, [6]uintptr{address(0), 0, none, none, 0}, ""},
		{"fanotify_init", "D6", "to watch a file system", unix.SYS_FANOTIFY_INIT, [6]uintptr{0x200}, ""},
		{"quotactl", "D6", "to read or set quotas", unix.SYS_QUOTACTL, [6]uintptr{0x80000100, 0, 0, 0}, ""},
		{"quotactl_fd", "D6", "to read or set quotas of an open file system", unix.SYS_QUOTACTL_FD, [6]uintptr{0, 0x80000100, 0, 0}, ""},
	}
}

// systemCalls change the machine.
func systemCalls() []plain {
	return []plain{
		{"init_module", "D6", "to load a module", unix.SYS_INIT_MODULE, [6]uintptr{address(0), 1, text("")}, ""},
		{"finit_module", "D6", "to load a module from a file", unix.SYS_FINIT_MODULE, [6]uintptr{0, text(""), 0}, ""},
		{"delete_module", "D6", "to remove a module", unix.SYS_DELETE_MODULE, [6]uintptr{text("envapi_none"), 0}, ""},
		{"kexec_load", "D6", "to start another kernel", unix.SYS_KEXEC_LOAD, [6]uintptr{0, 0, 0, 0}, ""},
		{"kexec_file_load", "D6", "to start another kernel from a file", unix.SYS_KEXEC_FILE_LOAD, [6]uintptr{none, none, 0, 0, 0}, ""},
		{"reboot", "D6", "to have the kernel obey control-alt-delete by a signal", unix.SYS_REBOOT, [6]uintptr{unix.LINUX_REBOOT_MAGIC1, unix.LINUX_REBOOT_MAGIC2, unix.LINUX_REBOOT_CMD_CAD_OFF}, ""},
		{"swapon", "D6", "to use a file as swap", unix.SYS_SWAPON, [6]uintptr{text("/nonexistent"), 0}, ""},
		{"swapoff", "D6", "to take swap away", unix.SYS_SWAPOFF, [6]uintptr{text("/nonexistent")}, ""},
		{"acct", "D6", "to have every process accounted for in a file", unix.SYS_ACCT, [6]uintptr{text("/nonexistent")}, ""},
		{"settimeofday", "D6", "to set the clock", unix.SYS_SETTIMEOFDAY, [6]uintptr{0, address(0)}, ""},
		{"clock_settime", "D6", "to set the clock", unix.SYS_CLOCK_SETTIME, [6]uintptr{unix.CLOCK_MONOTONIC, address(0)}, ""},
		{"sethostname", "D6", "to rename the host", unix.SYS_SETHOSTNAME, [6]uintptr{text("x"), 1}, ""},
		{"setdomainname", "D6", "to rename the host's domain", unix.SYS_SETDOMAINNAME, [6]uintptr{text("x"), 1}, ""},
		{"syslog", "D6", "to read the kernel's log", unix.SYS_SYSLOG, [6]uintptr{3, address(0), 64}, ""},
		{"vhangup", "D6", "to hang up a terminal", unix.SYS_VHANGUP, [6]uintptr{}, ""},
	}
}

// peekingCalls look into other processes, or at files by their number.
func peekingCalls() []plain {
	self := uintptr(unix.Getpid())
	return []plain{
		{"open_by_handle_at", "the shocker exploit of Docker (2014)", "to open a file by its number, wherever it is", unix.SYS_OPEN_BY_HANDLE_AT, [6]uintptr{workingDirectory, handle(), 0}, ""},
		{"name_to_handle_at", "the shocker exploit of Docker (2014)", "to learn the number of a file", unix.SYS_NAME_TO_HANDLE_AT, [6]uintptr{workingDirectory, text("/"), handle(), address(2048), 0}, ""},
		{"kcmp", "D7", "to compare kernel objects of two processes", unix.SYS_KCMP, [6]uintptr{self, self, 0, 0, 0}, ""},
		{"process_vm_readv", "D7", "to read another process's memory", unix.SYS_PROCESS_VM_READV, [6]uintptr{1, address(0), 0, address(0), 0, 0}, ""},
		{"process_vm_writev", "D7", "to write another process's memory", unix.SYS_PROCESS_VM_WRITEV, [6]uintptr{1, address(0), 0, address(0), 0, 0}, ""},
		{"process_madvise", "D7", "to change another process's memory", unix.SYS_PROCESS_MADVISE, [6]uintptr{none, address(0), 0, 0, 0}, ""},
		{"pidfd_getfd", "D7", "to take a descriptor out of another process", unix.SYS_PIDFD_GETFD, [6]uintptr{none, 0, 0}, ""},
	}
}

// handle is an empty file handle in the scratch memory, with room for 128 bytes.
func handle() uintptr {
	scratch[3072] = 128
	return address(3072)
}

func callRows() []Row { return plainRows("", plainCalls()) }

// plainRows makes a row of each, whose name begins with prefix.
func plainRows(prefix string, plains []plain) []Row {
	rows := make([]Row, len(plains))
	for i, p := range plains {
		rows[i] = Row{
			ID: prefix + p.id, Stands: p.stands, Tries: p.tries, Expect: everywhere("refused " + cmp.Or(p.errno, "EPERM")),
			run: func(*Targets) string {
				defer runtime.KeepAlive(&scratch)
				return calls{{number: p.number, args: p.args}}.verdict("the kernel did it")
			},
		}
	}
	return rows
}
