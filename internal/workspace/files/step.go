package files

import (
	"errors"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"

	"envapi/internal/workspace/inside"
)

const (
	opPut  = "put"
	opTake = "take"
	// beside marks, where names cannot be exchanged, what is replaced.
	beside = ".old"
)

// step is one rename of a transaction. All its methods run as the environment's user.
type step struct {
	op     string
	name   string // in the transaction's folder, before or after
	at     *inside.Place
	target string // in at.Dir
	over   bool
	put    identity // of what is put
}

// identity tells one thing on a file system from all others, also from one that has
// got the number of an inode that is gone.
type identity struct {
	Ino  uint64 `json:"ino"`
	Born int64  `json:"born,omitempty"` // ns since 1970; 0 where the file system does not say
}

func identityAt(dir *os.File, name string) (identity, error) {
	var st unix.Statx_t
	err := unix.Statx(fd(dir), name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &st)
	id := identity{Ino: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.Born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return id, err
}

// look finds out what is put.
func (s *step) look(dir *os.File) error {
	if s.op != opPut {
		return nil
	}
	put, err := identityAt(dir, s.name)
	s.put = put
	return err
}

// do makes the step. Where it fails, undo takes back what was made of it.
func (s *step) do(dir *os.File) error {
	switch {
	case s.op == opTake && !s.at.Exists():
		return inside.Fault(s.at.Path, unix.ENOENT)
	case s.op == opTake:
		return s.take(dir)
	case s.at.Exists():
		return s.replace(dir)
	}
	err := renameNew(dir, s.name, s.at.Dir, s.target)
	if errors.Is(err, unix.EEXIST) && (s.over || s.at.Judged) {
		return changed(s.at.Path)
	}
	return inside.Fault(s.at.Path, err)
}

func (s *step) take(dir *os.File) error {
	err := renameNew(s.at.Dir, s.target, dir, s.name)
	if errors.Is(err, unix.ENOENT) {
		return changed(s.at.Path)
	}
	if err != nil {
		return inside.Fault(s.at.Path, err)
	}
	return s.judge(dir)
}

func (s *step) replace(dir *os.File) error {
	if !s.over {
		return inside.Fault(s.at.Path, unix.EEXIST)
	}
	if s.at.Kind() == unix.S_IFDIR {
		return inside.Fault(s.at.Path, unix.EISDIR)
	}
	err := exchange(dir, s.name, s.at.Dir, s.target)
	if errors.Is(err, unix.ENOENT) {
		return changed(s.at.Path)
	}
	if err != nil {
		return inside.Fault(s.at.Path, err)
	}
	return s.judge(dir)
}

// judge fails where what came back is not what was looked at before.
func (s *step) judge(dir *os.File) error {
	came, err := statAt(dir, s.name)
	if err == nil && !s.fits(&came) {
		return changed(s.at.Path)
	}
	return err
}

func (s *step) fits(came *unix.Stat_t) bool {
	if s.at.Judged {
		return sameContent(came, &s.at.Stat)
	}
	return came.Mode&unix.S_IFMT == s.at.Kind()
}

// undo takes the step back where it was made. What a program inside has put there
// since stays; the right to write to the directory, which it may have taken away, is
// what the step needs again.
func (s *step) undo(dir *os.File) error {
	err := s.back(dir)
	if !errors.Is(err, unix.EACCES) {
		return err
	}
	st, err := statOf(s.at.Dir)
	if err != nil {
		return err
	}
	mode := st.Mode & 0o7777
	if err := unix.Chmod(held(s.at.Dir), mode|0o300); err != nil {
		return err
	}
	return errors.Join(s.back(dir), unix.Chmod(held(s.at.Dir), mode))
}

func (s *step) back(dir *os.File) error {
	if err := s.finishExchange(dir); err != nil {
		return err
	}
	back, err := identityAt(dir, s.name)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	held := err == nil
	if s.op == opTake {
		if !held {
			return nil
		}
		return s.left(renameNew(dir, s.name, s.at.Dir, s.target))
	}
	there, err := identityAt(s.at.Dir, s.target)
	if errors.Is(err, unix.ENOENT) || err == nil && there != s.put || held && back == s.put {
		return nil // it was not made, or is somebody else's now
	}
	if err != nil {
		return err
	}
	if held {
		return s.giveBack(dir)
	}
	return s.withdraw(dir)
}

// giveBack exchanges what was put for what it replaced.
func (s *step) giveBack(dir *os.File) error {
	err := exchange(dir, s.name, s.at.Dir, s.target)
	if err != nil {
		return s.left(err)
	}
	if came, err := identityAt(dir, s.name); err != nil || came == s.put {
		return err
	}
	return exchange(dir, s.name, s.at.Dir, s.target) // it is somebody else's since
}

// withdraw takes what was put away again.
func (s *step) withdraw(dir *os.File) error {
	err := renameNew(s.at.Dir, s.target, dir, s.name)
	if errors.Is(err, unix.EACCES) && s.widen() == nil {
		err = renameNew(s.at.Dir, s.target, dir, s.name)
	}
	if err != nil {
		return s.left(err)
	}
	if came, err := identityAt(dir, s.name); err != nil || came == s.put {
		return err
	}
	return s.left(renameNew(dir, s.name, s.at.Dir, s.target)) // it is somebody else's since
}

// widen gives a directory that was put the right to be moved: it is freed then.
func (s *step) widen() error {
	f, err := openAt(s.at.Dir, s.target, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := statOf(f)
	if err != nil || st.Ino != s.put.Ino {
		return errors.Join(err, unix.EACCES)
	}
	return unix.Chmod(held(f), st.Mode&0o7777|0o700)
}

// left tells the log of what cannot be undone because of programs inside.
func (s *step) left(err error) error {
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOENT) {
		slog.Default().Warn("a change was not undone whole: a program inside has changed the name meanwhile",
			"operation", s.op, "name", s.target)
		return nil
	}
	return err
}

// finishExchange ends what exchange has begun where the file system cannot do it.
func (s *step) finishExchange(dir *os.File) error {
	if _, err := statAt(dir, s.name); !errors.Is(err, unix.ENOENT) {
		return err
	}
	err := unix.Renameat(fd(dir), s.name+beside, fd(dir), s.name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func statAt(dir *os.File, name string) (st unix.Stat_t, err error) {
	err = unix.Fstatat(fd(dir), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

// renameat2 is the system's; tests stand in for file systems that know less.
var renameat2 = unix.Renameat2

// exchange swaps two names in one step. Where the file system cannot, the one in dir
// replaces the other in one step, and the other is dir's afterwards all the same: it
// gets a second name there before.
func exchange(dir *os.File, name string, to *os.File, target string) error {
	err := renameat2(fd(dir), name, fd(to), target, unix.RENAME_EXCHANGE)
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	if err := unix.Linkat(fd(to), target, fd(dir), name+beside, 0); err != nil {
		return err
	}
	if err := unix.Renameat(fd(dir), name, fd(to), target); err != nil {
		return errors.Join(err, unix.Unlinkat(fd(dir), name+beside, 0))
	}
	return unix.Renameat(fd(dir), name+beside, fd(dir), name)
}

// renameNew renames to where nothing stands. Where the file system cannot promise
// that, a file gets its second name before it loses the first.
func renameNew(from *os.File, name string, to *os.File, target string) error {
	err := renameat2(fd(from), name, fd(to), target, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	st, err := statAt(from, name)
	if err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if _, err := statAt(to, target); err == nil {
			return unix.EEXIST
		}
		return unix.Renameat(fd(from), name, fd(to), target) // replaces an empty directory at most
	}
	if err := unix.Linkat(fd(from), name, fd(to), target, 0); err != nil {
		return err
	}
	return unix.Unlinkat(fd(from), name, 0)
}
