package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/faults"
	"envapi/internal/workspace/vault"
)

const (
	// archiveEnd is the end of an archive's name, and unfinishedEnd of one that is being
	// written.
	archiveEnd    = ".tar.zst"
	unfinishedEnd = ".unfinished"
)

// openArchives opens the folder of archives, and takes away what a crash has left.
func openArchives(dir string) (*os.File, error) {
	archives, err := openOwn(filepath.Join(dir, ArchiveFolder), 0o700)
	if err != nil {
		return nil, err
	}
	names, err := archives.Readdirnames(-1)
	for _, name := range names {
		if err == nil && isUnfinished(name) {
			err = removeEntry(archives, name)
		}
	}
	if err != nil {
		_ = archives.Close()
		return nil, failed("put the folder of archives in order", err)
	}
	return archives, nil
}

// isUnfinished says whether a name is that of an archive that was being written.
func isUnfinished(name string) bool {
	id, _, _ := strings.Cut(name, ".")
	return idShape.MatchString(id) && strings.HasSuffix(name, unfinishedEnd)
}

// archivedID gives the id that the name of an archive has, "" where it is none.
func archivedID(name string) string {
	if id, ok := strings.CutSuffix(name, archiveEnd); ok && idShape.MatchString(id) {
		return id
	}
	return ""
}

// ArchiveIDs gives the ids of all archives, in no order.
func (w *Workspaces) ArchiveIDs() ([]string, error) {
	f, err := os.Open(w.archives.Name())
	if err != nil {
		return nil, failed("list the archives", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, failed("list the archives", err)
	}
	var ids []string
	for _, name := range names {
		if id := archivedID(name); id != "" {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Pack makes the archive of a folder, which stays as it is, in place of one that is there
// already. Nothing may run in the environment meanwhile. Where ctx ends, or it fails,
// there is no new one. Whose the files are is seen by the folder.
func (w *Workspaces) Pack(ctx context.Context, id string, _ int) (core.Archive, error) {
	if err := check(ctx, id); err != nil {
		return core.Archive{}, err
	}
	a, err := w.pack(ctx, id)
	if err != nil {
		return core.Archive{}, failed("archive the workspace "+id, err)
	}
	return a, nil
}

func (w *Workspaces) pack(ctx context.Context, id string) (core.Archive, error) {
	folder, err := openPathOf(w.live, id)
	if err != nil {
		return core.Archive{}, err
	}
	defer folder.Close()
	name := id + "." + rand.Text() + unfinishedEnd
	n, err := unix.Openat(fd(w.archives), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return core.Archive{}, err
	}
	f := os.NewFile(uintptr(n), name)
	a, err := w.writeArchive(ctx, folder, f)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = w.reached("pack synced")
	}
	if err == nil {
		err = unix.Renameat(fd(w.archives), name, fd(w.archives), id+archiveEnd)
	}
	if err != nil {
		return core.Archive{}, errors.Join(err, removeEntry(w.archives, name))
	}
	if err := errors.Join(w.reached("pack moved"), w.archives.Sync()); err != nil {
		return core.Archive{}, errors.Join(err, removeEntry(w.archives, id+archiveEnd))
	}
	return a, nil
}

// writeArchive writes an archive to the disk.
func (w *Workspaces) writeArchive(ctx context.Context, folder, f *os.File) (core.Archive, error) {
	if err := errors.Join(w.reached("pack begun"), f.Chmod(0o600)); err != nil { // the umask may have cut it
		return core.Archive{}, err
	}
	content, err := vault.Pack(ctx, folder, f)
	if err != nil {
		return core.Archive{}, err
	}
	if err := errors.Join(w.reached("pack written"), f.Sync()); err != nil {
		return core.Archive{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return core.Archive{}, err
	}
	return core.Archive{At: time.Now().UTC(), Bytes: info.Size(), Content: content}, nil
}

// Unpack makes the folder from the archive, which stays, owned by uid where that is not
// 0: in one step, in place of a folder that is there, whose space is then freed in the
// background. It fails with `disk_full`, and where the archive is not whole; what it has
// made until then is freed in the background too.
func (w *Workspaces) Unpack(ctx context.Context, id string, uid int) error {
	if err := check(ctx, id); err != nil {
		return err
	}
	err := w.unpack(ctx, id, uid)
	if errors.Is(err, vault.ErrDamaged) {
		return core.Errorf(core.CodeInternal, "cannot restore the workspace %s: its archive is damaged, or was changed; "+
			"nothing was changed. Who runs the service can put back a copy of it, or delete the environment", id).Because(err)
	}
	if err != nil {
		return failed("restore the workspace "+id, err)
	}
	return nil
}

func (w *Workspaces) unpack(ctx context.Context, id string, uid int) error {
	n, err := unix.Openat(fd(w.archives), id+archiveEnd, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open its archive: %w", err)
	}
	archive := os.NewFile(uintptr(n), id+archiveEnd)
	defer archive.Close()
	return w.make(id, uid, func(base *os.File) (*vault.Tree, error) {
		return vault.Unpack(ctx, archive, base, uid)
	})
}

// Copy makes the folder of one environment from that of another, as it is while it is
// read, owned by uid: in one step. Blocks are shared where the file system can. It fails
// with `quota_exceeded` where that is more than most.
func (w *Workspaces) Copy(ctx context.Context, from, to string, uid int, most core.DiskUse) error {
	if err := check(ctx, from); err != nil {
		return err
	}
	if err := check(ctx, to); err != nil {
		return err
	}
	folder, err := openPathOf(w.live, from)
	if err != nil {
		return failed("copy the workspace "+from, err)
	}
	defer folder.Close()
	err = w.make(to, uid, func(base *os.File) (*vault.Tree, error) {
		return vault.Copy(ctx, folder, base, uid, most)
	})
	if errors.Is(err, vault.ErrChanged) {
		return core.Errorf(core.CodeUnavailable, "cannot copy the workspace %s now: its directories are moved while they are read; "+
			"try again when nothing moves them", from).With("retry_after_ms", 1000).Because(err)
	}
	if err != nil {
		return failed("copy the workspace "+from, err)
	}
	return nil
}

// make has a folder made in the trash, where nobody sees it and where the next Open frees
// what a crash leaves, and moves it to its place when all of it is on disk.
func (w *Workspaces) make(id string, uid int, do func(base *os.File) (*vault.Tree, error)) error {
	name, err := w.stage(id, uid)
	if err != nil {
		return err
	}
	// Whatever is left in it then: what was made and failed, or the old folder.
	defer w.janitor.add(id, name, nil)
	base, err := openDir(w.trash, name)
	if err != nil {
		return err
	}
	defer base.Close()
	tree, err := do(base)
	if err != nil {
		return err
	}
	defer func() { _ = tree.Close() }()
	return w.install(id, base, tree)
}

// install moves a folder that was made to its place.
func (w *Workspaces) install(id string, base *os.File, tree *vault.Tree) error {
	// One call for all files; it says where one could not be written (Linux 5.8).
	if err := errors.Join(w.reached("install made"), unix.Syncfs(fd(base)), w.reached("install synced")); err != nil {
		return fmt.Errorf("write it to disk: %w", err)
	}
	err := unix.Renameat2(fd(base), tree.Name, fd(w.live), id, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		err = moveDir(w.live, id, base, tree.Name, unix.RENAME_EXCHANGE)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(w.reached("install moved"), tree.Settle(), w.reached("install settled")); err != nil {
		return err
	}
	// Before the old folder is emptied: a power loss must not bring it back half empty.
	return errors.Join(w.live.Sync(), base.Sync(), w.trash.Sync())
}

// Vacate takes the folder away as Remove does, and leaves the archive.
func (w *Workspaces) Vacate(ctx context.Context, id string) error {
	if err := check(ctx, id); err != nil {
		return err
	}
	return w.takeAway(id, nil)
}

// DropArchive removes the archive. Removing what is not there is no error.
func (w *Workspaces) DropArchive(ctx context.Context, id string) error {
	if err := check(ctx, id); err != nil {
		return err
	}
	err := unix.Unlinkat(fd(w.archives), id+archiveEnd, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err == nil {
		err = errors.Join(w.reached("archive removed"), w.archives.Sync())
	}
	if err != nil {
		return failed("remove the archive of "+id, err)
	}
	return nil
}

// reached says how far a change has come: to tests of this package, and to package faults.
func (w *Workspaces) reached(point string) error {
	if w.point != nil {
		w.point(point)
	}
	return faults.At("workspace."+point, "")
}
