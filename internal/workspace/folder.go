package workspace

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/files"
	"envapi/internal/workspace/inside"
)

// rest is what of a tree other packages have yet to give.
type rest struct{ core.FileTree }

// folder is the folder of one environment, as core.FileTree has it.
type folder struct {
	rest
	*files.Tree
	root *inside.Root
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
	return &folder{Tree: w.files.Tree(id, root, uid), root: root}, nil
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
