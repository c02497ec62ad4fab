package frames

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/sandbox/fsuser"
	"envapi/sandbox/inotify"
)

// Frame is one command on its way through a shell.
type Frame struct {
	folder *Folder
	script string // the script's name
	status string // the name of what makes $? a code; "" where that takes no file
	nonce  string // what the name of the record begins with
	again  string // likewise, of the one that is asked for again
	file   *os.File
	pipes  []*Pipe
	opened *inotify.Watch
	timed  bool // for want of a watch, the script's time tells that it was opened
}

// Pipe is a pipe with a name.
type Pipe struct {
	name   string
	Read   *os.File // does not block
	keeper *os.File // an end to write to, so that the pipe has no end before Release
}

// New makes the files of a command.
func (f *Folder) New(script string, o Output) (*Frame, error) {
	// 128 random bits, which no command before has seen.
	frame := &Frame{folder: f, script: newName(), nonce: rand.Text(), again: rand.Text()}
	err := fsuser.Do(f.place.UID, f.place.GID, func() error {
		if err := f.mend(); err != nil {
			return err
		}
		if err := frame.writeScript(script); err != nil {
			return err
		}
		for range o.Pipes() + o.Asides() {
			if err := frame.addPipe(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		frame.Remove()
		frame.CloseAll()
		return nil, fmt.Errorf("cannot hand a command to a shell: %w", err)
	}
	return frame, nil
}

func (fr *Frame) dir() int { return int(fr.folder.dir.Fd()) }

func (fr *Frame) writeScript(script string) (err error) {
	if script == "" {
		script = "\n" // what is empty is not read (WasOpened)
	}
	fr.file, err = fr.write(fr.script, script)
	return err
}

// write makes a file, in the place of nothing.
func (fr *Frame) write(name, content string) (*os.File, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(fr.dir(), name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.WriteString(content)
	return f, err
}

func (fr *Frame) addPipe() error {
	p := &Pipe{name: newName()}
	if err := unix.Mkfifoat(fr.dir(), p.name, 0o600); err != nil {
		return err
	}
	fr.pipes = append(fr.pipes, p)
	var err error
	if p.Read, err = openFIFO(fr.dir(), p.name, unix.O_RDONLY); err != nil {
		return err
	}
	if p.keeper, err = openFIFO(fr.dir(), p.name, unix.O_WRONLY); err != nil {
		return err
	}
	return sameFile(p.Read, p.keeper)
}

// errSwapped is that a command put something else in the place of a pipe.
var errSwapped = errors.New("a process in the box has put something else in its place")

// openFIFO opens a FIFO and refuses whatever else has its name.
func openFIFO(dir int, name string, flags uint64) (*os.File, error) {
	fd, err := unix.Openat2(dir, name, inFolder(flags))
	if err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	err = unix.Fstat(fd, &stat)
	if err == nil && stat.Mode&unix.S_IFMT != unix.S_IFIFO {
		err = errSwapped
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

func sameFile(a, b *os.File) error {
	one, err := a.Stat()
	if err != nil {
		return err
	}
	other, err := b.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(one, other) {
		return errSwapped
	}
	return nil
}

// Pipe gives a pipe, from 0 on. Who reads it closes it.
func (fr *Frame) Pipe(i int) *Pipe { return fr.pipes[i] }

// Release lets the pipe end when no process can write to it any more.
func (p *Pipe) Release() { _ = p.keeper.Close() }

// Watch tells when bash opens the script. It must be called once, before bash is
// told of it. Where no watch is to be had, WasOpened must be asked instead.
func (fr *Frame) Watch(w *inotify.Watcher, opened func()) error {
	defer fr.file.Close()
	var err error
	fr.opened, err = w.Once(int(fr.file.Fd()), unix.IN_OPEN, func(inotify.Event) { opened() })
	if errors.Is(err, inotify.ErrFull) {
		return fr.watchTime()
	}
	return err
}

// errNoTimes is why a command cannot be run where no watch is to be had either.
var errNoTimes = errors.New(inotify.ErrFull.Error() + ", and the file system of the box's temporary folder does not note when a file is read, since it is mounted with noatime")

// watchTime sets the time of the script's last read long before it was written. So
// the kernel notes the next one (relatime in mount(8)).
func (fr *Frame) watchTime() error {
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(fr.file.Fd()), &system); err != nil {
		return err
	}
	if system.Flags&unix.ST_NOATIME != 0 {
		return errNoTimes
	}
	fr.timed = true
	never := []unix.Timespec{{}, {Nsec: unix.UTIME_OMIT}}
	return unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fr.file.Fd()), never, 0)
}

// WasOpened says, where there is no watch of it, whether bash has read the script.
// One that is gone was.
func (fr *Frame) WasOpened() bool {
	if !fr.timed {
		return false
	}
	var stat unix.Stat_t
	err := unix.Fstatat(fr.dir(), fr.script, &stat, unix.AT_SYMLINK_NOFOLLOW)
	return err != nil || stat.Atim.Sec != 0
}

// WatchRecord tells of the next thing that is made in the folder, which may be the
// record.
func (fr *Frame) WatchRecord(w *inotify.Watcher, made func(inotify.Event)) (*inotify.Watch, error) {
	return w.Once(fr.dir(), unix.IN_CREATE, made)
}

// Record gives the exit code that a name in the folder says, and false where it
// is not the record's. Of the record that was asked for again only Interrupted
// counts: that an interrupt took the first one away is a reason to ask again, and
// any other code may be that of whatever kept bash from making the first.
func (fr *Frame) Record(name string) (code int, ok bool) {
	if code, ok := parseRecord(name, fr.nonce); ok {
		return code, true
	}
	code, ok = parseRecord(name, fr.again)
	return code, ok && code == Interrupted
}

// Interrupted is the exit code of what was interrupted.
const Interrupted = 128 + 2

// maxCode is the largest exit code.
const maxCode = 255

func parseRecord(name, nonce string) (code int, ok bool) {
	digits, ok := strings.CutPrefix(name, nonce+".")
	if !ok {
		return 0, false
	}
	code, err := strconv.Atoi(digits)
	if err != nil || code < 0 || code > maxCode || strconv.Itoa(code) != digits {
		return 0, false
	}
	return code, true
}

// Find looks for the record by all the names that it can have.
func (fr *Frame) Find() (code int, ok bool) {
	for code := range maxCode + 1 {
		if fr.exists(recordName(fr.nonce, code)) {
			return code, true
		}
	}
	return Interrupted, fr.exists(recordName(fr.again, Interrupted))
}

func (fr *Frame) exists(name string) bool {
	var stat unix.Stat_t
	return unix.Fstatat(fr.dir(), name, &stat, unix.AT_SYMLINK_NOFOLLOW) == nil
}

func recordName(nonce string, code int) string { return nonce + "." + strconv.Itoa(code) }

// Remove removes the files, and the records of a code.
func (fr *Frame) Remove(codes ...int) {
	fr.opened.Cancel()
	_ = fsuser.Do(fr.folder.place.UID, fr.folder.place.GID, func() error {
		fr.remove(fr.script)
		if fr.status != "" {
			fr.remove(fr.status)
		}
		for _, p := range fr.pipes {
			fr.remove(p.name)
		}
		for _, code := range codes {
			fr.remove(recordName(fr.nonce, code))
			fr.remove(recordName(fr.again, code))
		}
		return nil
	})
}

// remove removes a name, unless a command has put a folder there.
func (fr *Frame) remove(name string) { _ = unix.Unlinkat(fr.dir(), name, 0) }

// CloseAll closes what is open of a frame that bash was not told of.
func (fr *Frame) CloseAll() {
	_ = fr.file.Close()
	for _, p := range fr.pipes {
		_ = p.Read.Close()
		_ = p.keeper.Close()
	}
}
