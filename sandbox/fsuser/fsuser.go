// Package fsuser touches files as another user: the kernel then applies that
// user's rights, also where a path leads somewhere else than was thought, and
// gives him what is made.
//
// Not protected: the thread keeps the capabilities that are not about files. So
// what is done here sets no extended attribute but user.* and starts nothing.
// access(2) asks for the real uid and must not be used.
package fsuser

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Do runs do on a thread that is, for files, the user uid with the group gid and
// no other group. Where the service is not root it is that user already, and
// uid 0 is itself. do must start no goroutine for work on files: that would run
// as the service. Within do, Do for the same user just runs what it is given, and for
// another one fails.
func Do(uid, gid int, do func() error) (err error) {
	if uid == 0 || os.Geteuid() != 0 {
		return do()
	}
	runtime.LockOSThread()
	if now := set(unix.SYS_SETFSUID, -1); now != 0 {
		defer runtime.UnlockOSThread()
		if now != uid {
			return fmt.Errorf("cannot touch files as uid %d within what is done as uid %d", uid, now)
		}
		return do()
	}
	defer func() { // also where do panics
		if err := restore(); err != nil {
			end(err)
		}
		runtime.UnlockOSThread()
	}()
	if err := become(uid, gid); err != nil {
		return err
	}
	return do()
}

// end ends the service: a thread that cannot become the service's again must do
// nothing more, and a panic of this goroutine could be recovered.
func end(err error) {
	go panic(fmt.Sprintf("cannot become the service's user again: %v", err))
	select {}
}

// become drops the groups first: afterwards the thread may still, but so nothing
// is ever done with one right too many.
func become(uid, gid int) error {
	if err := setGroups(nil); err != nil {
		return err
	}
	set(unix.SYS_SETFSGID, gid)
	set(unix.SYS_SETFSUID, uid)
	if got := set(unix.SYS_SETFSUID, -1); got != uid {
		return fmt.Errorf("cannot touch files as uid %d: the kernel says %d", uid, got)
	}
	if got := set(unix.SYS_SETFSGID, -1); got != gid {
		return fmt.Errorf("cannot touch files as gid %d: the kernel says %d", gid, got)
	}
	return nil
}

// restore makes the thread the service's again.
func restore() error {
	set(unix.SYS_SETFSUID, 0)
	set(unix.SYS_SETFSGID, os.Getegid())
	if set(unix.SYS_SETFSUID, -1) != 0 || set(unix.SYS_SETFSGID, -1) != os.Getegid() {
		return errors.New("the kernel does not take the uid")
	}
	return setGroups(own())
}

// own gives the groups of the service, which never change.
var own = sync.OnceValue(func() []uint32 {
	groups, _ := os.Getgroups()
	all := make([]uint32, len(groups))
	for i, g := range groups {
		all[i] = uint32(g)
	}
	return all
})

// set makes the call for this thread alone, and gives what was set before. With -1
// it sets nothing (setfsuid(2)).
func set(trap uintptr, id int) int {
	before, _, _ := syscall.RawSyscall(trap, uintptr(id), 0, 0)
	return int(int32(before)) //nolint:gosec // an id
}

// setGroups makes the call for this thread alone; package syscall's is for all.
func setGroups(groups []uint32) error {
	own() // before the first change
	var first unsafe.Pointer
	if len(groups) > 0 {
		first = unsafe.Pointer(&groups[0])
	}
	_, _, errno := syscall.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0)
	if errno != 0 {
		return fmt.Errorf("cannot set the groups of a thread: %w", errno)
	}
	return nil
}
