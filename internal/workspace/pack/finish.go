package pack

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ownerWrite is what a directory's mode needs to have for the kernel to move it to
// another one.
const ownerWrite = 0o200

// finish gives directories their modes and times, those that are deeper first. It
// gives those that can have their mode only when they are where they belong, by the
// names they have in the transaction's folder.
func (u *unpacker) finish() (later map[string]uint32, err error) {
	later = map[string]uint32{}
	for n := len(u.directories) - 1; n >= 0; n-- {
		d := &u.directories[n]
		if d.merged {
			continue
		}
		mode := d.mode
		if d.above == aside && mode&ownerWrite == 0 {
			later[d.name] = mode
			mode |= ownerWrite
		}
		if err := u.settle(n, mode); err != nil {
			return nil, err
		}
	}
	return later, nil
}

// settle makes a directory what it is to be, now that nothing more comes into it.
func (u *unpacker) settle(n int, mode uint32) error {
	dir, err := openDirectory(u.base, u.path(n))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := setTime(dir, u.directories[n].modifiedAt); err != nil {
		return err
	}
	return unix.Fchmod(int(dir.Fd()), mode)
}

// path gives where a directory is in the transaction's folder.
func (u *unpacker) path(n int) string {
	var names []string
	for ; n != aside; n = u.directories[n].above {
		names = append(names, u.directories[n].name)
	}
	for i, j := 0, len(names)-1; i < j; i, j = i+1, j-1 {
		names[i], names[j] = names[j], names[i]
	}
	return strings.Join(names, "/")
}

// moveAside takes something out of where it was unpacked, into the transaction's
// folder itself, so that it can be put.
func (u *unpacker) moveAside(from *os.File, name string, kind uint32, as string) error {
	if kind == unix.S_IFDIR {
		dir, err := openDirectory(from, name)
		if err != nil {
			return err
		}
		defer dir.Close()
		n, err := u.number(dir)
		if err != nil {
			return err
		}
		u.directories[n].above, u.directories[n].name = aside, as
	}
	return unix.Renameat(int(from.Fd()), name, int(u.base.Fd()), as)
}
