// Package workspace keeps the folders of environments on a file system of this
// host. It implements core.Workspaces.
//
//	DIR/workspaces/ENV          the folder of an environment, 0700, its uid's
//	DIR/trash/ENV.SOMETHING     a folder on its way in or out, 0700
//	DIR/staging/ENV             changes of its files on their way in; see package files
//	DIR/archives/ENV.tar.zst    the archive of a folder, 0600; see package vault
//
// A new folder is made in the trash and moved into its place when it is whole;
// an old one is moved into the trash in one step and emptied there in the
// background. What a crash leaves in the trash the next Open empties. An archive is
// written under another name beside its own, which the next Open removes.
//
// Everything in a folder is hostile. It is reached by descriptors relative to
// the folder, never by a path, and no link is followed and no mount entered.
// Nothing in it is opened but directories.
//
// What is not protected: two services must not open one DIR (the lock of the
// data folder sees to that), and whoever runs in a folder must be dead before
// Reset or Remove; what he goes on writing is emptied too, but without end.
package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/files"
	"envapi/internal/workspace/watch"
)

// Folders below a data folder: of the environments, and of their archives.
const (
	LiveFolder    = "workspaces"
	ArchiveFolder = "archives"
)

const (
	// replaceBound is how long Reset waits on a full disk for the space of a
	// new folder, which the first files of the old one give.
	replaceBound = 10 * time.Second
	replacePause = 20 * time.Millisecond
)

// Workspaces keeps the folders of all environments.
type Workspaces struct {
	dir   string // where the folders are, absolute
	live  *os.File
	trash *os.File
	// archives is where they are packed.
	archives *os.File
	janitor  *janitor
	files    *files.Store
	watches  *watch.Watches
	// counting holds a token for each folder that is being counted.
	counting  chan struct{}
	processes processes
	// point is told how far a change has come, by tests that then end the process.
	point func(string)
}

// Open opens the folders below dir, which must exist, makes what is missing
// and begins to empty the trash. Close them at the end.
func Open(dir string) (*Workspaces, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find the workspaces: %w", err)
	}
	// Commands pass through the first to their own folder; nobody else's
	// business is in the second.
	live, err := openOwn(filepath.Join(dir, LiveFolder), 0o711)
	if err != nil {
		return nil, err
	}
	trash, err := openOwn(filepath.Join(dir, "trash"), 0o700)
	if err != nil {
		_ = live.Close()
		return nil, err
	}
	archives, err := openArchives(dir)
	if err != nil {
		_ = live.Close()
		_ = trash.Close()
		return nil, err
	}
	w := &Workspaces{
		dir: live.Name(), live: live, trash: trash, archives: archives,
		janitor: newJanitor(trash), counting: make(chan struct{}, countsAtOnce),
	}
	if err := w.start(dir); err != nil {
		_ = live.Close()
		_ = trash.Close()
		_ = archives.Close()
		return nil, err
	}
	return w, nil
}

// openOwn opens a folder of the service's own, and makes it if there is none.
func openOwn(path string, mode os.FileMode) (*os.File, error) {
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, failed("make a folder for workspaces", err)
	}
	f, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, failed("open a folder for workspaces", err)
	}
	if err := f.Chmod(mode); err != nil { // the umask may have cut it
		_ = f.Close()
		return nil, failed("set the mode of a folder for workspaces", err)
	}
	return f, nil
}

// start makes the folders durable and sets the janitor to work.
func (w *Workspaces) start(parent string) error {
	p, err := os.Open(parent)
	if err != nil {
		return failed("open the data folder", err)
	}
	defer p.Close()
	if err := p.Sync(); err != nil {
		return failed("sync the data folder", err)
	}
	if err := w.janitor.start(); err != nil {
		return err
	}
	// After the janitor, which at its start looks for itself what is in the trash.
	w.files, err = files.Open(parent, w.live, w.trash, func(id, name string) { w.janitor.add(id, name, nil) })
	if err != nil {
		w.janitor.stop()
		return err
	}
	if w.watches, err = watch.Open(); err != nil {
		w.janitor.stop()
		_ = w.files.Close()
	}
	return err
}

// Close stops emptying the trash; the next Open goes on with it.
func (w *Workspaces) Close() error {
	w.janitor.stop()
	return errors.Join(w.watches.Close(), w.files.Close(), w.live.Close(), w.trash.Close(), w.archives.Close())
}

// Path gives the path of an environment's folder on this host, or "" for what
// is no id.
func (w *Workspaces) Path(id string) string {
	if !idShape.MatchString(id) {
		return ""
	}
	return filepath.Join(w.dir, id)
}

// IDs gives the ids of all folders, in no order. Other names are none of ours.
func (w *Workspaces) IDs() ([]string, error) {
	f, err := os.Open(w.dir)
	if err != nil {
		return nil, failed("list the workspaces", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, failed("list the workspaces", err)
	}
	var ids []string
	for _, name := range names {
		if idShape.MatchString(name) {
			ids = append(ids, name)
		}
	}
	return ids, nil
}

// Create makes the empty folder of an environment, owned by uid where that is
// not 0. A folder that is there is kept as it is.
func (w *Workspaces) Create(ctx context.Context, id string, uid int) error {
	if err := check(ctx, id); err != nil {
		return err
	}
	var st unix.Stat_t
	err := unix.Fstatat(fd(w.live), id, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return failed("create the workspace "+id, unix.ENOTDIR)
	}
	if errors.Is(err, unix.ENOENT) {
		err = w.place(id, uid)
	}
	if err != nil {
		return failed("create the workspace "+id, err)
	}
	return nil
}

// place moves a new folder to where there is none.
func (w *Workspaces) place(id string, uid int) error {
	name, err := w.stage(id, uid)
	if err != nil {
		return err
	}
	if err := unix.Renameat2(fd(w.trash), name, fd(w.live), id, unix.RENAME_NOREPLACE); err != nil {
		return errors.Join(err, removeEntry(w.trash, name))
	}
	// Once is enough: on disk too a rename is one step (of the journal).
	return errors.Join(w.reached("folder placed"), w.live.Sync())
}

// stage makes a new empty folder in the trash, whole and durable, and gives
// its name there.
func (w *Workspaces) stage(id string, uid int) (string, error) {
	name := trashName(id)
	if err := unix.Mkdirat(fd(w.trash), name, 0o700); err != nil {
		return "", err
	}
	if err := errors.Join(w.equip(name, uid), w.reached("folder made")); err != nil {
		return "", errors.Join(err, removeEntry(w.trash, name))
	}
	return name, nil
}

// equip gives a new folder in the trash its mode and owner.
func (w *Workspaces) equip(name string, uid int) error {
	f, err := openDir(w.trash, name)
	if err != nil {
		return err
	}
	defer f.Close()
	if uid != 0 {
		if err := f.Chown(uid, uid); err != nil {
			return err
		}
	}
	return f.Sync()
}

// Reset swaps the folder for an empty one in one step; where there is none it
// makes one. The old one's space is freed in the background. On a full disk,
// where there can be no new folder yet, there is none until enough is freed; what
// a crash then leaves undone, another Reset does.
func (w *Workspaces) Reset(ctx context.Context, id string, uid int) error {
	if err := check(ctx, id); err != nil {
		return err
	}
	err := w.swap(id, uid)
	if isDiskFull(err) {
		err = w.replace(ctx, id, uid)
	}
	if err != nil {
		return failed("reset the workspace "+id, err)
	}
	return nil
}

func (w *Workspaces) swap(id string, uid int) error {
	name, err := w.stage(id, uid)
	if err != nil {
		return err
	}
	err = moveDir(w.live, id, w.trash, name, unix.RENAME_EXCHANGE)
	if err != nil {
		err = errors.Join(err, removeEntry(w.trash, name))
	}
	if errors.Is(err, unix.ENOENT) {
		return w.place(id, uid)
	}
	if err != nil {
		return err
	}
	// The swap must be durable before the old folder is emptied: a power loss
	// must not bring it back half empty.
	if err := errors.Join(w.reached("folder exchanged"), w.sync()); err != nil {
		return err
	}
	w.janitor.add(id, name, nil)
	return nil
}

// replace takes the old folder away and makes a new one as soon as its space, or
// whatever else it takes, is free.
func (w *Workspaces) replace(ctx context.Context, id string, uid int) error {
	ctx, cancel := context.WithTimeout(ctx, replaceBound)
	defer cancel()
	freed := make(chan struct{})
	if err := w.Remove(ctx, id, func() { close(freed) }); err != nil {
		return err
	}
	for {
		last := ctx.Err() != nil || isClosed(freed)
		if err := w.place(id, uid); last || !isDiskFull(err) {
			return err
		}
		select {
		case <-freed:
		case <-time.After(replacePause): // most of the old one may be to come
		case <-ctx.Done():
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Remove takes the folder away in one step, and its archive. Once it and whatever else carries
// its id are freed, which is done in the background, freed is called, by
// another goroutine or, if nothing is there, before Remove returns. After Close
// it is not called any more: the next service asks again.
func (w *Workspaces) Remove(ctx context.Context, id string, freed func()) error {
	if err := w.DropArchive(ctx, id); err != nil {
		return err
	}
	return w.takeAway(id, freed)
}

// takeAway is Remove for the folder alone.
func (w *Workspaces) takeAway(id string, freed func()) error {
	if err := errors.Join(w.files.Forget(id), w.reached("changes forgotten")); err != nil {
		return err
	}
	name := trashName(id)
	err := moveDir(w.live, id, w.trash, name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.ENOENT) {
		w.janitor.whenFree(id, freed)
		return nil
	}
	if err == nil {
		err = errors.Join(w.reached("folder taken"), w.sync()) // before it is emptied, as in swap
	}
	if err != nil {
		return failed("remove the workspace "+id, err)
	}
	w.janitor.add(id, name, freed)
	return nil
}

// sync makes moves between the two folders durable.
func (w *Workspaces) sync() error {
	return errors.Join(w.live.Sync(), w.trash.Sync())
}

// check refuses what is no id before it comes near the disk.
func check(ctx context.Context, id string) error {
	if !idShape.MatchString(id) {
		return fmt.Errorf("cannot use the workspace %q: that is no id of an environment", id)
	}
	return ctx.Err()
}

var idShape = regexp.MustCompile(`^env_[a-z0-9]{26}$`)

// trashName gives a new name in the trash that carries an environment's id.
func trashName(id string) string { return id + "." + rand.Text() }

func isDiskFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// failed says what could not be done, and tells a full disk from other causes.
func failed(what string, err error) error {
	if isDiskFull(err) {
		return core.Errorf(core.CodeDiskFull, "cannot %s: the host's disk is full", what).Because(err)
	}
	return fmt.Errorf("cannot %s: %w", what, err)
}
