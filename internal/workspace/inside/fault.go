package inside

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/core"
)

const (
	// mostPathBytes and mostNameBytes are the kernel's bounds of a path and of each
	// name in it.
	mostPathBytes = unix.PathMax - 1
	mostNameBytes = 255
)

// checkPath refuses what can be no path.
func checkPath(name string) error {
	if strings.ContainsRune(name, 0) {
		return core.Errorf(core.CodeInvalidArgument, "cannot use the path %q: it holds a NUL byte", name).With("field", "path")
	}
	if len(name) > mostPathBytes {
		return core.Errorf(core.CodeInvalidArgument, "cannot use a path of %d bytes: the longest has %d", len(name), mostPathBytes).With("field", "path")
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > mostNameBytes {
			return core.Errorf(core.CodeInvalidArgument, "cannot use a path with a name of %d bytes: the longest has %d", len(part), mostNameBytes).With("field", "path")
		}
	}
	return nil
}

// outside says that a path leads out of the folder.
func outside(name string) *core.Error {
	return core.Errorf(core.CodePathOutside, "cannot use the path %q: it leads out of the workspace; give one relative to the workspace", name).With("path", name)
}

func notRegular(name string) *core.Error {
	return core.Errorf(core.CodeNotRegular, "cannot open %q: it is a FIFO, a socket, a device or a link and no regular file", name).With("path", name)
}

// faults are what the kernel's answers mean to a caller, and in which words.
var faults = []struct {
	errno error
	code  core.Code
	text  string
}{
	{unix.ENOENT, core.CodeNotFound, "there is no %q"},
	{unix.ENOTDIR, core.CodeNotADirectory, "cannot use %q: it, or something on the way to it, is no directory"},
	{unix.EISDIR, core.CodeIsADirectory, "cannot use %q as a file: it is a directory"},
	{unix.ELOOP, core.CodeSymlinkLoop, "cannot find %q: the links on the way to it lead in a circle, or there are more than 40"},
	{unix.EXDEV, core.CodePathOutside, "cannot use the path %q: it leads out of the workspace"},
	{unix.EACCES, core.CodePermissionDenied, "cannot touch %q: its mode, or that of a directory on the way to it, forbids it; chmod it by a command"},
	{unix.EPERM, core.CodePermissionDenied, "cannot touch %q: it belongs to somebody else or is protected"},
	{unix.EROFS, core.CodePermissionDenied, "cannot change %q: it is on a read-only file system"},
	{unix.EEXIST, core.CodeAlreadyExists, "there is already something at %q"},
	{unix.ENOTEMPTY, core.CodeNotEmpty, "the directory %q is not empty: set recursive to remove all that is in it, too"},
	{unix.ENAMETOOLONG, core.CodeInvalidArgument, "cannot use the path %q: it, or what a link in it leads to, is too long or too deep"},
	{unix.EINVAL, core.CodeInvalidArgument, "cannot do that with %q: the kernel does not take it"},
	{unix.ENOSPC, core.CodeDiskFull, "cannot write %q: the host's disk is full"},
	{unix.EDQUOT, core.CodeDiskFull, "cannot write %q: the host's disk gives no more space"},
	{unix.EFBIG, core.CodeTooLarge, "cannot write %q: the file system takes no file of that length"},
	{unix.EAGAIN, core.CodeUnavailable, "cannot find %q now: names on the way to it change too fast; try again"},
	{unix.ETXTBSY, core.CodePermissionDenied, "cannot write %q: a program that runs is in it"},
}

// Fault says what a failure of the kernel at a path means. Errors of core stay as
// they are, and what it does not know is internal.
func Fault(name string, err error) error {
	var known *core.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	for _, f := range faults {
		if errors.Is(err, f.errno) {
			e := core.Errorf(f.code, f.text, name).With("path", name).Because(err)
			if f.code == core.CodeInvalidArgument {
				e = e.With("field", "path")
			}
			return e
		}
	}
	return fmt.Errorf("cannot use the path %q: %w", name, err)
}
