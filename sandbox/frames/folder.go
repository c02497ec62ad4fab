// Package frames is what goes between the service and a bash beside its streams:
// for each command a file with the script, pipes by name for the output, and a
// record, which is a file by whose name bash says how the command ended.
//
// They are in a folder that belongs to the box, and whoever runs in the box may do
// there what he likes. So everything is made, opened and removed as the box's
// user, below the folder's own descriptor, through no link and never waiting, and
// what was opened is looked at. What others may have put there is not listed.
//
// Not protected: a command can deceive the service about the commands of its own
// shell.
package frames

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"envapi/sandbox/fsuser"
)

// Place is where a box keeps the folders of its shells.
type Place struct {
	Path     string   // as commands see it
	Dir      *os.File // the same, for the service
	UID, GID int      // whose the box is on the host; 0: the service's own
}

// Folder is where the frames of one shell are.
type Folder struct {
	place Place
	name  string
	dir   *os.File
}

// inFolder says how a name in a folder is opened. A device or a FIFO does not make
// it wait.
func inFolder(flags uint64) *unix.OpenHow {
	return &unix.OpenHow{
		Flags:   flags | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
}

// Open makes the folder of a shell. It takes the place's descriptor over.
func Open(p Place) (*Folder, error) {
	f := &Folder{place: p}
	if err := fsuser.Do(p.UID, p.GID, f.make); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot make a folder for a shell: %w", err), p.Dir.Close())
	}
	return f, nil
}

// nameLength is enough that no two things in a folder have one name.
const nameLength = 10

// newName gives a name that nothing has.
func newName() string { return rand.Text()[:nameLength] }

func (f *Folder) make() error {
	parent := int(f.place.Dir.Fd())
	if err := unlock(parent); err != nil {
		return err
	}
	name := "." + newName() // it may be in a folder of the commands' own
	if err := unix.Mkdirat(parent, name, 0o700); err != nil {
		return err
	}
	fd, err := unix.Openat2(parent, name, inFolder(unix.O_RDONLY|unix.O_DIRECTORY))
	if err != nil {
		return err
	}
	if f.dir != nil {
		_ = f.dir.Close()
	}
	f.name, f.dir = name, os.NewFile(uintptr(fd), name)
	return nil
}

// unlock gives the owner of a folder every right to it, where a command took them
// away.
func unlock(dir int) error {
	var stat unix.Stat_t
	if err := unix.Fstat(dir, &stat); err != nil {
		return err
	}
	if stat.Mode&0o700 == 0o700 {
		return nil
	}
	return unix.Fchmod(dir, 0o700)
}

// mend makes the folder anew where a command has removed it.
func (f *Folder) mend() error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.dir.Fd()), &stat); err != nil {
		return err
	}
	var there unix.Stat_t
	err := unix.Fstatat(int(f.place.Dir.Fd()), f.name, &there, unix.AT_SYMLINK_NOFOLLOW)
	if stat.Nlink == 0 || err != nil || there.Ino != stat.Ino || there.Dev != stat.Dev {
		return f.make()
	}
	return unlock(int(f.dir.Fd()))
}

// path gives the path of something in the folder, as commands see it.
func (f *Folder) path(name string) string { return path.Join(f.place.Path, f.name, name) }

// Close removes the folder, unless a command has put something there: that ends
// with the box.
func (f *Folder) Close() {
	_ = fsuser.Do(f.place.UID, f.place.GID, func() error {
		return unix.Unlinkat(int(f.place.Dir.Fd()), f.name, unix.AT_REMOVEDIR)
	})
	_ = f.dir.Close()
	_ = f.place.Dir.Close()
}
