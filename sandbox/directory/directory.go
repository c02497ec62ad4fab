// Package directory is the weakest tier: commands run as the service's own
// user on the host's file tree, without capabilities and, where the kernel has
// Landlock, restricted to the system's programs, their own workspace and a
// temporary folder of their own.
//
// It is for a service that runs as an ordinary user, since no command runs as
// root.
//
// Not protected: commands see the host's processes and network interfaces, and
// where the service has no cgroup to give, can exhaust what their user may use.
// Without Landlock they can read and write whatever their user can, which is why
// such a service serves one account only.
package directory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"envapi/sandbox"
	"envapi/sandbox/cgroup"
	"envapi/sandbox/hostfiles"
	"envapi/sandbox/landlock"
	"envapi/sandbox/protocol"
	"envapi/sandbox/supervisor"
)

// Config is what the tier needs to know.
type Config struct {
	Launcher *supervisor.Launcher
	Private  string // the folder of the boxes' temporary folders
	Path     string // the PATH of commands
	Groups   *cgroup.Parent
	Landlock int // the ABI to use; 0: none
	Log      *slog.Logger
}

// Host makes boxes that are folders.
type Host struct {
	config Config
	boxes  supervisor.Boxes
}

// New makes the tier. Whether this host can have it, only Open tells.
func New(c Config) *Host { return &Host{config: c} }

// NeedsUID implements sandbox.Host.
func (h *Host) NeedsUID() bool { return false }

// WorkspacePath implements sandbox.Host: there is no other view of it.
func (h *Host) WorkspacePath(path string) string { return path }

// Open implements sandbox.Host.
func (h *Host) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Box, error) {
	if os.Geteuid() == 0 {
		return nil, errors.New("cannot make a box of the directory tier as root: its commands would run as uid 0; " +
			"run the service as an ordinary user, or use the namespace tier")
	}
	tmp, err := os.MkdirTemp(h.config.Private, "tmp-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary folder for the box: %w", err)
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
		Log:       h.config.Log,
	})
}

// Close implements sandbox.Host.
func (h *Host) Close() error { return h.boxes.Close() }

func (h *Host) setup(spec sandbox.Spec, tmp string) protocol.Setup {
	setup := protocol.Setup{Workspace: spec.Workspace, Limits: supervisor.Limits(spec.Limits, false, h.config.Groups)}
	if h.config.Landlock > 0 {
		setup.Landlock = hostfiles.Access(spec.Workspace, tmp)
	}
	return setup
}

// Controls says what holds in this tier.
func (h *Host) Controls() []sandbox.Control {
	abi := h.config.Landlock
	missing := "the kernel has no Landlock"
	controls := []sandbox.Control{
		{Name: "uid", Enforced: false, Detail: "commands run as the service's own user"},
		{Name: "files", Enforced: abi > 0, Detail: "Landlock: the system's programs read-only, the own workspace and temporary folder"},
		{Name: "processes_hidden", Enforced: false, Detail: "the host's processes can be listed"},
		{Name: "signals", Enforced: abi >= landlock.ABIScopes, Detail: "Landlock scope: only the own box's processes (ABI 6)"},
		{Name: "process_ownership", Enforced: true, Detail: "only by descent: a process that is signalled must descend from the box's init, whose uid is the service's"},
		supervisor.HostIPC(),
		supervisor.HostNetwork(abi),
		supervisor.HostUnixSockets(),
		supervisor.HostTerminals(abi),
		supervisor.HostTemporary(),
	}
	if abi == 0 {
		controls[1].Detail, controls[3].Detail = missing, missing
	}
	controls = append(controls, supervisor.LimitControls(false, h.config.Groups)...)
	return append(controls, supervisor.CommonControls(abi)...)
}
