// Package landlock restricts the calling thread, and all that it starts, to
// named parts of the file system (Landlock, Linux 5.13 and later; see
// landlock(7)). It restricts one thread and not the process, since a box's
// init keeps its other threads able to signal what the restricted one started;
// that is why the field's library, which restricts all threads, is not used.
//
// What each version of the kernel's interface adds, and what is made of it here:
//
//	ABI  Linux  adds                              used
//	  1  5.13   reading, writing, executing,      yes
//	            making and removing files
//	  2  5.19   linking and renaming between      yes
//	            directories, refused before
//	  3  6.2    truncating                        yes
//	  4  6.7    TCP: bind, connect                where the network is refused
//	  5  6.10   ioctl on devices                  yes
//	  6  6.12   scopes: signals, abstract unix    yes
//	            sockets
//	  7  6.15   what is written to the audit log  what commands refuse themselves
//	                                              is not: it could fill the log
//	  8  7.0    restricting all threads at once   no: see above
//	  9  7.1    unix sockets by path              yes: only those of the same box
//	 10  7.2    UDP: bind, connect, send          where the network is refused
//
// ABIs above 7 are taken from the kernel's documentation and were not run.
//
// Not protected, whatever the ABI: chmod, chown, utime and setxattr on files
// that the uid owns, sockets of other kinds than TCP and UDP (multipath TCP
// among them), and what was open before. Package seccomp refuses the sockets.
package landlock

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rule permits what lies at or below Path: reading and executing it, and with
// Write everything else.
type Rule struct {
	Path     string
	Write    bool
	Optional bool // skipped where the path does not exist
}

const (
	fileRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	fileWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	dirRead   = unix.LANDLOCK_ACCESS_FS_READ_DIR
	dirWrite  = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	everything = fileRead | fileWrite | dirRead | dirWrite
)

// abis says what each ABI added to what can be restricted; an ABI without a
// line added nothing that is used here.
var abis = []struct {
	version int
	fs      uint64
	net     uint64
	scoped  uint64
}{
	{1, everything &^ (unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV), 0, 0},
	{2, unix.LANDLOCK_ACCESS_FS_REFER, 0, 0},
	{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE, 0, 0},
	{4, 0, unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, 0},
	{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, 0, 0},
	{6, 0, 0, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL},
	{9, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX, 0, 0}, // no rule permits it: what is of the same domain may be reached
	{10, 0, unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP, 0},
}

// The ABI from which on a thing can be restricted.
const (
	ABITCP    = 4 // TCP ports
	ABIScopes = 6 // signals and abstract sockets
	ABIAudit  = 7 // the audit log
)

// ABI gives the kernel's Landlock ABI, 0 where it has none.
func ABI() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// Restrict restricts the calling thread to the rules, to signals and abstract
// and other unix sockets within itself where the ABI can, and with denyNetwork
// to no TCP and UDP. The thread must be locked and have no_new_privs set. It
// cannot be undone.
func Restrict(rules []Rule, denyNetwork bool) error {
	abi := ABI()
	handled, err := handledBy(abi, denyNetwork)
	if err != nil {
		return err
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&handled)), unsafe.Sizeof(handled), 0)
	if errno != 0 {
		return fmt.Errorf("cannot create a Landlock ruleset: %w", errno)
	}
	ruleset := int(fd)
	defer unix.Close(ruleset)
	for _, r := range rules {
		if err := add(ruleset, r, handled.Handled_access_fs); err != nil {
			return err
		}
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, flags(abi), 0); errno != 0 {
		return fmt.Errorf("cannot restrict the thread by Landlock: %w", errno)
	}
	return nil
}

// flags keeps the denials of a command that restricts itself further out of the
// host's audit log; those of this restriction are not logged once a program is
// executed.
func flags(abi int) uintptr {
	if abi < ABIAudit {
		return 0
	}
	return unix.LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF
}

func handledBy(abi int, denyNetwork bool) (unix.LandlockRulesetAttr, error) {
	var handled unix.LandlockRulesetAttr
	if abi == 0 {
		return handled, errors.New("cannot restrict by Landlock: the kernel has none")
	}
	for _, a := range abis {
		if a.version > abi {
			break
		}
		handled.Handled_access_fs |= a.fs
		handled.Scoped |= a.scoped
		if denyNetwork {
			handled.Handled_access_net |= a.net
		}
	}
	return handled, nil
}

func add(ruleset int, r Rule, handled uint64) error {
	fd, err := unix.Open(r.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if r.Optional && errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open %s for a Landlock rule: %w", r.Path, err)
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("cannot look at %s for a Landlock rule: %w", r.Path, err)
	}
	rule := unix.LandlockPathBeneathAttr{
		Parent_fd:      int32(fd), //nolint:gosec // the kernel's numbers are small
		Allowed_access: allowed(r.Write, stat.Mode&unix.S_IFMT == unix.S_IFDIR) & handled,
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("cannot add a Landlock rule for %s: %w", r.Path, errno)
	}
	return nil
}

// allowed gives the rights of a rule; the kernel refuses a directory's rights
// on a file.
func allowed(write, dir bool) uint64 {
	rights := uint64(fileRead)
	if dir {
		rights |= dirRead
	}
	if write {
		rights |= fileWrite
	}
	if write && dir {
		rights |= dirWrite
	}
	return rights
}
