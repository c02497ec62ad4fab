package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/files"
	"envapi/internal/workspace/find"
	"envapi/internal/workspace/inside"
	"envapi/internal/workspace/pack"
	"envapi/internal/workspace/watch"
)

// folder is the folder of one environment, as core.FileTree has it.
type folder struct {
	*files.Tree
	*find.Finder
	*pack.Packer
	root    *inside.Root
	watches *watch.Watches
}

var _ core.FileTree = (*folder)(nil)

// Watch implements core.FileTree.
func (f *folder) Watch(ctx context.Context, path string, recursive bool) (core.FileWatch, error) {
	return f.watches.Watch(ctx, f.root, path, recursive)
}

// Close lets go of the folder; what is open in it goes on.
func (f *folder) Close() error { return errors.Join(f.Tree.Close(), f.root.Close()) }

// Files implements core.Workspaces. The host's path of the folder leads to it too,
// where commands see that.
func (w *Workspaces) Files(id string, uid int, seen string) (core.FileTree, error) {
	if !idShape.MatchString(id) {
		return nil, core.NotFound("environment", id)
	}
	d, err := openPathOf(w.live, id)
	if err != nil {
		return nil, failed("open the workspace "+id, err)
	}
	root := inside.NewRoot(d, uid, seen, namespacePath, filepath.Join(w.dir, id))
	tree := w.files.Tree(id, root, uid)
	return &folder{
		Tree: tree, Finder: find.New(root, w.files.Known), Packer: pack.New(root, tree),
		root: root, watches: w.watches,
	}, nil
}

// namespacePath is where the folder is for commands in a namespace of their own, and
// what callers may call it everywhere.
const namespacePath = "/workspace"

// openPathOf opens a folder of an environment, only to begin at.
func openPathOf(live *os.File, id string) (*os.File, error) {
	how := itself
	how.Flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	d, err := unix.Openat2(fd(live), id, &how)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(d), filepath.Join(live.Name(), id)), nil
}
