// Package user is the middle tier, for a service that is root on a host without
// user namespaces: every environment's commands run as a host uid and gid of its
// own, on the host's file tree, without capabilities and, where the kernel has
// Landlock, restricted as in the directory tier.
//
// Accounts are kept apart by the uid alone: other workspaces are closed to it by
// their mode, and other environments' processes by the kernel's rules for uids.
// Landlock closes the rest of the host.
//
// Not protected: commands see the host's processes and network interfaces, and
// can end their own init, by the thread that started them. The box then ends, and
// what is left of that uid is killed before the box is said to be gone. If the
// service is killed at that very moment, it is killed when the service starts
// again. Without Landlock they read what everybody on the host may read.
package user

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"envapi/sandbox"
	"envapi/sandbox/cgroup"
	"envapi/sandbox/hostfiles"
	"envapi/sandbox/protocol"
	"envapi/sandbox/supervisor"
)

// sweepPatience bounds the end of what a box has left.
const sweepPatience = 15 * time.Second

// Config is what the tier needs to know.
type Config struct {
	Launcher *supervisor.Launcher
	Private  string // the folder of the boxes' temporary folders, which others may pass through
	Path     string // the PATH of commands
	Landlock int    // the ABI to use; 0: none
	Groups   *cgroup.Parent
	Log      *slog.Logger
}

// Host makes boxes that are users.
type Host struct {
	config  Config
	tenants tenants
	boxes   supervisor.Boxes
}

// New makes the tier. Whether this host can have it, only Open tells.
func New(c Config) *Host { return &Host{config: c} }

// NeedsUID implements sandbox.Host.
func (h *Host) NeedsUID() bool { return true }

// WorkspacePath implements sandbox.Host: there is no other view of it.
func (h *Host) WorkspacePath(path string) string { return path }

// errNotRoot is why an ordinary user cannot have the tier.
var errNotRoot = errors.New("cannot make a box of the user tier: the service is not root, and only root can give commands another uid")

// Open implements sandbox.Host.
func (h *Host) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Box, error) {
	if os.Geteuid() != 0 {
		return nil, errNotRoot
	}
	if spec.UID == 0 {
		return nil, errors.New("cannot make a box: it needs a host uid other than 0")
	}
	return h.tenants.of(spec.UID).succeed(func() (sandbox.Box, error) { return h.launch(ctx, spec) })
}

func (h *Host) launch(ctx context.Context, spec sandbox.Spec) (sandbox.Box, error) {
	tmp, err := h.temporary(spec.UID)
	if err != nil {
		return nil, err
	}
	return h.boxes.Launch(ctx, h.config.Launcher, supervisor.Options{
		ID:        spec.ID,
		Setup:     h.setup(spec, tmp),
		Spool:     h.config.Private,
		Temporary: tmp,
		Groups:    h.config.Groups,
		Account:   spec.Account,
		Limits:    spec.Limits,
		Env:       supervisor.Environ(h.config.Path, spec.Workspace, tmp),
		Killed:    func() { h.sweep(spec) },
		Log:       h.config.Log,
	})
}

// temporary makes a temporary folder that belongs to a uid.
func (h *Host) temporary(uid int) (string, error) {
	tmp, err := os.MkdirTemp(h.config.Private, "tmp-")
	if err == nil {
		if err = os.Chown(tmp, uid, uid); err != nil {
			err = errors.Join(err, os.Remove(tmp))
		}
	}
	if err != nil {
		return "", fmt.Errorf("cannot make a temporary folder for the box: %w", err)
	}
	return tmp, nil
}

// sweep ends what a box has left whose init was killed: without Landlock a command
// can do that.
func (h *Host) sweep(spec sandbox.Spec) {
	ctx, cancel := context.WithTimeout(context.Background(), sweepPatience)
	defer cancel()
	if err := supervisor.Sweep(ctx, h.config.Launcher, spec.UID, h.config.Log); err != nil {
		h.config.Log.Warn("a box may have left processes", "box", spec.ID, "cause", err)
	}
}

// Close implements sandbox.Host.
func (h *Host) Close() error { return h.boxes.Close() }

func (h *Host) setup(spec sandbox.Spec, tmp string) protocol.Setup {
	setup := protocol.Setup{
		ID: spec.UID, DropGroups: true,
		Workspace: spec.Workspace,
		Limits:    supervisor.Limits(spec.Limits, true, h.config.Groups),
	}
	if h.config.Landlock > 0 {
		setup.Landlock = hostfiles.Access(spec.Workspace, tmp)
	}
	return setup
}
