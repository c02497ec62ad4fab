package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace"
	"envapi/internal/workspace/vault"
)

const (
	// makingName is the folder in a backup in which another one is made: nobody but its
	// user may come there.
	makingName = "making"
	// copyPiece is how much of an archive is copied between two looks at the context.
	copyPiece = 64 << 20
	// A folder may have grown since it was counted, as far as its limits let it, and in
	// the time until that is noticed.
	slackBytes, slackFiles = 1 << 30, 100_000
)

// folder copies the folder of an environment, and says whether there is one. It fails with
// errPassing where there is another one after that.
func (m *maker) folder(ctx context.Context, env core.EnvironmentRecord) (there bool, err error) {
	from, err := workspace.OpenFolder(m.live, env.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	return true, errors.Join(m.copyFolder(ctx, env, from), from.Close())
}

func (m *maker) copyFolder(ctx context.Context, env core.EnvironmentRecord, from *os.File) (err error) {
	making := filepath.Join(m.path, makingName)
	base, err := m.own(making, env.HostUID)
	if err != nil {
		return err
	}
	defer func() {
		// Also where the context has ended: the next try needs the place.
		err = errors.Join(err, workspace.Empty(context.Background(), base), base.Close(), os.Remove(making))
	}()
	tree, err := vault.Copy(ctx, from, base, env.HostUID, m.most(env))
	if err != nil {
		return m.space.judge(err) // before what was copied gives its room back
	}
	defer func() { _ = tree.Close() }()
	if err := m.still(from, env.ID); err != nil {
		return err
	}
	if err := unix.Renameat2(int(base.Fd()), tree.Name, int(m.madeLive.Fd()), env.ID, unix.RENAME_NOREPLACE); err != nil {
		return fmt.Errorf("move its copy: %w", err)
	}
	m.result.Files += tree.Content.Files
	m.result.Bytes += tree.Content.Bytes
	return tree.Settle()
}

// own makes a folder that is a user's.
func (m *maker) own(path string, uid int) (*os.File, error) {
	dir, err := makeFolder(path, 0o700)
	if err != nil {
		return nil, fmt.Errorf("make a folder for its copy: %w", err)
	}
	if uid != 0 {
		if err := dir.Chown(uid, uid); err != nil {
			return nil, errors.Join(fmt.Errorf("make a folder for its copy: %w", err), dir.Close())
		}
	}
	return dir, nil
}

// still fails where a folder is not an environment's any more.
func (m *maker) still(folder *os.File, id string) error {
	var was, is unix.Stat_t
	if err := unix.Fstat(int(folder.Fd()), &was); err != nil {
		return err
	}
	err := unix.Fstatat(int(m.live.Fd()), id, &is, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || err == nil && (is.Ino != was.Ino || is.Dev != was.Dev) {
		return errPassing
	}
	return err
}

// most is what a copy may come to: programs that write meanwhile could make it endless.
func (m *maker) most(env core.EnvironmentRecord) core.DiskUse {
	use, limits := m.sizes[env.ID], m.request.Limits
	return core.DiskUse{
		Bytes: 2*use.Bytes + limits.DiskBytes + slackBytes,
		Files: 2*use.Files + limits.Files + slackFiles,
	}
}

// empty makes the folder of an environment that was being reset.
func (m *maker) empty(env core.EnvironmentRecord) error {
	dir, err := m.own(filepath.Join(m.path, workspace.LiveFolder, env.ID), env.HostUID)
	if err != nil {
		return err
	}
	return dir.Close()
}

// archive copies the archive of an environment, and says what it is. One that is there
// is whole, and is never changed. It fails with fs.ErrNotExist where there is none.
func (m *maker) archive(ctx context.Context, env core.EnvironmentRecord) (*core.Archive, error) {
	// Asked before, since it may be restored, and have none, when it is copied.
	now, _, err := m.records.Now(ctx, env.ID)
	if err != nil {
		return nil, err
	}
	name := workspace.ArchiveName(env.ID)
	n, err := unix.Openat(int(m.archives.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	from := os.NewFile(uintptr(n), name)
	defer from.Close()
	n, err = unix.Openat(int(m.madeOld.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	to := os.NewFile(uintptr(n), name)
	size, err := copyFile(ctx, from, to)
	if err = errors.Join(err, to.Close()); err != nil {
		return nil, fmt.Errorf("copy its archive: %w", m.space.judge(err))
	}
	for _, recorded := range []*core.Archive{env.Archive, now.Archive} {
		if recorded != nil && recorded.Bytes == size {
			m.result.Bytes += size
			return recorded, nil
		}
	}
	return nil, errUnlike
}

// copyFile copies a file, sharing its blocks where the file system can.
func copyFile(ctx context.Context, from, to *os.File) (size int64, err error) {
	if unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil {
		info, err := to.Stat()
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	for ctx.Err() == nil {
		n, err := io.CopyN(to, from, copyPiece)
		size += n
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
	return size, ctx.Err()
}
