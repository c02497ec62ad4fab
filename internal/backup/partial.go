package backup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"

	"envapi/internal/workspace"
)

const (
	// markName is a file in a backup that is not whole.
	markName = "UNFINISHED-BACKUP"
	markText = "This is a part of a backup of envapi that was never finished. It is of no use: remove it.\n"
)

// partialName is what a backup is called until it is whole.
var partialName = regexp.MustCompile(`.\.partial-[A-Z2-7]{26}$`)

// partial is a backup that is being made.
type partial struct {
	path string
	to   string   // the name that it gets
	dir  *os.File // with a lock, by which others know that it is being made
}

// begin makes the folder, and removes those that were left by backups that were killed.
func begin(ctx context.Context, to string) (*partial, error) {
	sweep(ctx, filepath.Dir(to))
	p := &partial{path: to + ".partial-" + rand.Text(), to: to}
	if err := os.Mkdir(p.path, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of the backup: %w", err)
	}
	err := p.open()
	if err == nil {
		err = os.WriteFile(filepath.Join(p.path, markName), []byte(markText), 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot make the folder of the backup: %w", err), p.discard())
	}
	return p, nil
}

func (p *partial) open() (err error) {
	p.dir, err = os.OpenFile(p.path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	if err := p.dir.Chmod(0o700); err != nil { // the umask may have cut it
		return err
	}
	return unix.Flock(int(p.dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// finish gives the backup its name, when all of it is on disk. Writing it there can take
// minutes, so what says that it is none goes only after that.
func (p *partial) finish() error {
	// One call for all files; it says where one could not be written (Linux 5.8).
	if err := unix.Syncfs(int(p.dir.Fd())); err != nil {
		return fmt.Errorf("cannot write the backup to disk: %w", err)
	}
	if err := os.Remove(filepath.Join(p.path, markName)); err != nil {
		return fmt.Errorf("cannot finish the backup: %w", err)
	}
	if err := p.dir.Sync(); err != nil {
		return fmt.Errorf("cannot write the backup to disk: %w", err)
	}
	err := unix.Renameat2(unix.AT_FDCWD, p.path, unix.AT_FDCWD, p.to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) { // such as NFS, which cannot say it
		err = os.Rename(p.path, p.to)
	}
	if err != nil {
		return fmt.Errorf("cannot give the backup its name: %w", err)
	}
	parent, err := os.Open(filepath.Dir(p.to))
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}

// discard removes what was made.
func (p *partial) discard() error {
	var err error
	if p.dir != nil {
		err = removeAll(context.Background(), p.dir)
	}
	if err = errors.Join(err, gone(os.Remove(p.path))); err != nil {
		return fmt.Errorf("cannot remove %s, which is of no use: %w", p.path, err)
	}
	return nil
}

func (p *partial) close() {
	if p.dir != nil {
		_ = p.dir.Close()
	}
}

// removeAll empties the folder of a backup, and keeps what says that it is none to the
// end.
func removeAll(ctx context.Context, dir *os.File) error {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == markName {
			continue
		}
		if err := workspace.RemoveFolder(ctx, dir, name); err != nil {
			return err
		}
	}
	return workspace.Empty(ctx, dir)
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sweep removes what is left of backups in a folder that were killed. What it cannot
// remove stays for the next one, or for whoever runs the service.
func sweep(ctx context.Context, parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if partialName.MatchString(e.Name()) {
			_ = sweepOne(ctx, filepath.Join(parent, e.Name()))
		}
	}
}

func sweepOne(ctx context.Context, path string) error {
	dir, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil || int(st.Uid) != os.Geteuid() {
		return errors.Join(err, errors.New("it is somebody else's"))
	}
	if err := unix.Fstatat(int(dir.Fd()), markName, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err // it is being made
	}
	if err := removeAll(ctx, dir); err != nil {
		return err
	}
	return os.Remove(path)
}
