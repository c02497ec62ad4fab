// Package files reads and changes the files of environments, durably and all or
// nothing.
//
//	DIR/staging/ENV/s.SOMETHING   content on its way in, or out
//	DIR/staging/ENV/t.SOMETHING   a transaction, with its journal where it has several steps
//
// Nothing is made in a workspace that is not whole: it is made in the staging folder,
// which is the environment's user's, on the same file system, and below no workspace,
// and moved to its place by rename. What was there comes back by the same step
// (RENAME_EXCHANGE) and is looked at: if it is not what a condition was judged by, the
// step is undone. What cannot be undone now stays in its folder for the next Open. A crash leaves nothing in a workspace; the next Open undoes what was
// not whole and empties the staging folder.
//
// What is not protected: a program inside that writes to a file through a descriptor
// or a mapping writes to the old one, which then is nobody's; what it puts in a file's
// place between the last look and the exchange is lost where the service is killed
// before it has looked at what came back, microseconds later; on kernels whose times
// are coarse (before Linux 6.13) a write within the tick of the one before it may go
// unseen, and so may one whose writer sets the time back. While several changes are
// made, a program inside may see some of them and not yet the others. Where the
// service has no users of its own to give to environments, its staging folder is as
// safe from them as the sandbox makes the rest of the data folder.
package files

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/faults"
	"envapi/internal/workspace/inside"
)

// Store keeps what the trees of all environments share.
type Store struct {
	staging *os.File
	live    *os.File
	trash   *os.File
	away    func(id, name string)
	locks   locks
	tags    tags
	// point is told where a change has come to, by tests that then end the process.
	point func(string)
}

// reached says where a change has come to: to tests of this package, and to package faults.
func (s *Store) reached(point string) error {
	if s.point != nil {
		s.point(point)
	}
	return faults.At("files."+point, "")
}

// Open opens the staging folder in dir, and makes it where there is none. live are
// the folders of the environments, for recovery; trash is where what is left of a
// change goes: away is told of each name in it. Transactions that a crash has
// interrupted are undone before it returns.
func Open(dir string, live, trash *os.File, away func(id, name string)) (*Store, error) {
	path := filepath.Join(dir, "staging")
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, failed("make the staging folder", err)
	}
	staging, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, failed("open the staging folder", err)
	}
	s := &Store{staging: staging, live: live, trash: trash, away: away}
	if err := errors.Join(staging.Chmod(0o700), s.recover()); err != nil {
		_ = staging.Close()
		return nil, failed("put the staging folder in order", err)
	}
	return s, nil
}

// Close lets go of the staging folder.
func (s *Store) Close() error { return s.staging.Close() }

// Tree makes the tree of an environment's folder, for its user uid (0: the service's
// own). The root stays the caller's, and must be open as long as the tree is used.
func (s *Store) Tree(id string, root *inside.Root, uid int) *Tree {
	return &Tree{store: s, id: id, root: root, uid: uid}
}

// Known gives the ETag of a file that has just this stat, or "" where that is not
// known without reading it.
func (s *Store) Known(st *unix.Stat_t) string { return s.tags.get(st) }

// Forget empties the staging folder of an environment. Trees of it that are open can
// change nothing any more.
func (s *Store) Forget(id string) error {
	err := s.discard(s.staging, id, id)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return failed("empty the staging folder of "+id, err)
	}
	return nil
}

// discard moves a folder to the trash.
func (s *Store) discard(from *os.File, name, id string) error {
	to := id + "." + rand.Text()
	if err := unix.Renameat2(fd(from), name, fd(s.trash), to, unix.RENAME_NOREPLACE); err != nil {
		return err
	}
	s.away(id, to)
	return nil
}

// folder opens the staging folder of an environment, which is its user's.
func (s *Store) folder(id string, uid int) (*os.File, error) {
	err := unix.Mkdirat(fd(s.staging), id, 0o700)
	made := err == nil
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, failed("make a staging folder", err)
	}
	f, err := openAt(s.staging, id, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, failed("open a staging folder", err)
	}
	err = own(f, uid)
	if err == nil && made {
		err = s.staging.Sync()
	}
	if err != nil {
		_ = f.Close()
		return nil, failed("equip a staging folder", err)
	}
	return f, nil
}

// own makes a staging folder a user's, where it is not yet.
func own(f *os.File, uid int) error {
	st, err := statOf(f)
	if err != nil {
		return err
	}
	if uid != 0 && os.Geteuid() == 0 && (int(st.Uid) != uid || int(st.Gid) != uid) {
		if err := f.Chown(uid, uid); err != nil {
			return err
		}
	}
	if st.Mode&0o7777 == 0o700 {
		return nil
	}
	return f.Chmod(0o700)
}

// names gives what is in a directory that is ours.
func names(dir *os.File) ([]string, error) {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return dir.Readdirnames(-1)
}

func fd(f *os.File) int { return int(f.Fd()) }

// openAt opens a name in a directory of the staging folder.
func openAt(dir *os.File, name string, flags int) (*os.File, error) {
	for {
		n, err := unix.Openat(fd(dir), name, flags|unix.O_CLOEXEC, 0o600)
		if err == nil {
			return os.NewFile(uintptr(n), name), nil
		}
		if !errors.Is(err, unix.EINTR) {
			return nil, err
		}
	}
}

// failed says what the service could not do for itself, and tells a full disk from
// other causes.
func failed(what string, err error) error {
	var known *core.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT):
		return core.Errorf(core.CodeDiskFull, "cannot %s: the host's disk is full", what).Because(err)
	}
	return fmt.Errorf("cannot %s: %w", what, err)
}
