// Package namespace is the strongest tier: every box has namespaces of its own
// for users, mounts, processes, network, ipc, host name and cgroups, and a file
// tree of which only /workspace lasts.
//
// As root, a box's uid 1000 is a host uid of the environment's own; as an
// ordinary user it is that user. Inside, no other uid exists: uid 0 is never
// mapped, since inside 0 on host 0 could write /proc/sys and mount cgroups.
//
// Not protected: kernel bugs, side channels, and the caller's own processes
// against each other.
package namespace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/cgroup"
	"envapi/sandbox/landlock"
	"envapi/sandbox/protocol"
	"envapi/sandbox/supervisor"
)

// WorkspacePath is where a box's folder is, as its commands see it.
const WorkspacePath = "/workspace"

// insideID is the one uid and gid that exist in a box.
const insideID = 1000

// Config is what the tier needs to know.
type Config struct {
	Launcher *supervisor.Launcher
	Rootfs   string // the directory that /usr and the like come from; "" is the host's root
	Path     string // the PATH of commands
	Private  string // a folder for files without a name
	Groups   *cgroup.Parent
	Log      *slog.Logger
}

// Host makes boxes with namespaces.
type Host struct {
	config Config
	root   []protocol.Entry // what all boxes' file trees begin with
	boxes  supervisor.Boxes
}

// New makes the tier. Whether this host can have it, only Open tells.
func New(c Config) *Host {
	return &Host{config: c, root: fileTree(c.Rootfs)}
}

// NeedsUID implements sandbox.Host: only root can give other uids away.
func (h *Host) NeedsUID() bool { return os.Geteuid() == 0 }

// WorkspacePath implements sandbox.Host.
func (h *Host) WorkspacePath(string) string { return WorkspacePath }

// Open implements sandbox.Host.
func (h *Host) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Box, error) {
	if h.NeedsUID() == (spec.UID == 0) {
		return nil, errors.New("cannot make a box: as root, and only then, it needs a host uid other than 0")
	}
	workspace, trees, err := h.workspace(spec)
	if err != nil {
		return nil, err
	}
	return h.boxes.Launch(ctx, h.config.Launcher, supervisor.Options{
		ID:         spec.ID,
		Namespaces: namespaces(spec.UID),
		Setup:      h.setup(spec, workspace),
		Trees:      trees,
		Env:        h.environ(),
		Spool:      h.config.Private,
		Groups:     h.config.Groups,
		Account:    spec.Account,
		Limits:     spec.Limits,
		Log:        h.config.Log,
	})
}

// Close implements sandbox.Host.
func (h *Host) Close() error { return h.boxes.Close() }

// namespaces says who the init of a box is.
func namespaces(uid int) *supervisor.Namespaces {
	if uid != 0 {
		return &supervisor.Namespaces{Inside: insideID, UID: uid, GID: uid, DropGroups: true}
	}
	// Only root may drop its groups; a user keeps them.
	return &supervisor.Namespaces{Inside: insideID, UID: os.Geteuid(), GID: os.Getegid()}
}

// workspace gives the entry of the folder. As root its tree is opened here and
// handed over: the box's uid may not pass the folders above it.
func (h *Host) workspace(spec sandbox.Spec) (protocol.Entry, []*os.File, error) {
	entry := protocol.Entry{Target: WorkspacePath, Writable: true}
	if !h.NeedsUID() {
		entry.Kind, entry.Source = protocol.EntryBind, spec.Workspace
		return entry, nil, nil
	}
	entry.Kind = protocol.EntryTree
	fd, err := unix.OpenTree(unix.AT_FDCWD, spec.Workspace, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return entry, nil, fmt.Errorf("cannot open the workspace to mount it: %w", err)
	}
	return entry, []*os.File{os.NewFile(uintptr(fd), "workspace")}, nil
}

func (h *Host) setup(spec sandbox.Spec, workspace protocol.Entry) protocol.Setup {
	setup := protocol.Setup{
		Hostname:  "envapi",
		Root:      append(bounded(h.root, spec.Limits.MemoryBytes), workspace),
		Workspace: WorkspacePath,
		Limits:    supervisor.Limits(spec.Limits, true, h.config.Groups),
	}
	if landlock.ABI() > 0 {
		setup.Landlock = []protocol.Access{
			{Path: "/"},
			{Path: WorkspacePath, Write: true},
			{Path: "/tmp", Write: true},
			{Path: supervisor.FramesPath, Write: true},
			{Path: "/dev", Write: true},
			{Path: "/proc", Write: true},
		}
	}
	return setup
}

func (h *Host) environ() map[string]string {
	return supervisor.Environ(h.config.Path, WorkspacePath, "/tmp")
}
