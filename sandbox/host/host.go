// Package host finds the strongest tier that this machine can have, by trying
// each for real, and makes its boxes.
//
// Not protected: a probe shows that the controls worked when the service
// started; a host that is changed under it is not probed again.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/cgroup"
	"envapi/sandbox/supervisor"
	"envapi/sandbox/user"
)

// Options says what to look for.
type Options struct {
	Tier    sandbox.Tier // only this tier; "" is the strongest
	MinTier sandbox.Tier // fail below this one; "" is any
	Rootfs  string       // where the namespace tier takes /usr and the like from; "" is the host's root
	// CommandPath is the PATH of commands; "" is supervisor.DefaultPath.
	CommandPath string
	// Private is a folder of this package's own, made where it is absent, for
	// temporary folders. What is in it is removed: no other Host may use it. As
	// root, others must be able to pass through it and the folders above.
	Private string
	// UIDs are the host uids of environments, the last one excluded, where they
	// are known and nobody else's: what an earlier service left of them is ended.
	UIDs [2]int
	// InitPath is the program of the box init; "" is the embedded one.
	InitPath string
	Log      *slog.Logger // never nil
}

// tier is what the packages of the tiers offer.
type tier interface {
	NeedsUID() bool
	WorkspacePath(path string) string
	Open(ctx context.Context, spec sandbox.Spec) (sandbox.Box, error)
	Controls() []sandbox.Control
	Close() error
}

// Host is the chosen tier.
type Host struct {
	tier
	launcher *supervisor.Launcher
	groups   *cgroup.Parent
	survey   survey
}

// New probes every tier and gives the one to use. It also makes this process
// unreadable for others of its uid (PR_SET_DUMPABLE, prctl(2)), since its
// memory holds tokens. Where no tier is good enough its error is a *Refusal.
func New(ctx context.Context, o Options) (*Host, error) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("cannot become not dumpable: %w", err)
	}
	if err := checkRootfs(o.Rootfs); err != nil {
		return nil, err
	}
	if err := emptyFolder(o.Private, o.Log); err != nil {
		return nil, err
	}
	groups, err := openGroups(o.Private, o.Log)
	if err != nil {
		return nil, err
	}
	launcher, err := supervisor.NewLauncher(o.InitPath)
	if err != nil {
		return nil, errors.Join(err, groups.Close())
	}
	h := &Host{launcher: launcher, groups: groups}
	if err := h.choose(ctx, o); err != nil {
		return nil, errors.Join(err, launcher.Close(), groups.Close())
	}
	return h, nil
}

// emptyFolder makes a folder, or removes what a service before this one left in
// it. What cannot be removed, since a command has seen to that, is no reason not
// to start.
func emptyFolder(dir string, log *slog.Logger) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the folder for temporary folders: %w", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot read the folder for temporary folders: %w", err)
	}
	for _, entry := range left {
		if err := supervisor.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			log.Warn("cannot remove what an earlier run left", "cause", err)
		}
	}
	return nil
}

// checkRootfs refuses a root file system that is not there. Its tier would fail
// to run anything, and a weaker one, which does without it, would be taken.
func checkRootfs(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = &os.PathError{Op: "stat", Path: path, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return fmt.Errorf("cannot take the root file system that is set: %w", err)
	}
	return nil
}

// choose probes the tiers, and takes the strongest that works and is asked for.
func (h *Host) choose(ctx context.Context, o Options) error {
	h.survey = look(ctx, h.launcher, h.groups, o)
	chosen := h.survey.strongest(o.Tier)
	for i := range h.survey {
		if f := &h.survey[i]; f != chosen {
			_ = f.tier.Close() // it has no box
		}
	}
	if chosen == nil {
		return &Refusal{Findings: h.survey.findings(nil), why: o.without()}
	}
	h.tier = chosen.tier
	if strength(chosen.name) < strength(o.MinTier) {
		why := fmt.Sprintf("the strongest sandbox tier here is %s, below the required %s", chosen.name, o.MinTier)
		return errors.Join(&Refusal{Findings: h.survey.findings(nil), why: why}, h.tier.Close())
	}
	if users, ok := chosen.tier.(*user.Host); ok && o.UIDs[1] > o.UIDs[0] {
		if err := users.EndLeftovers(ctx, o.UIDs[0], o.UIDs[1]); err != nil {
			return errors.Join(err, h.tier.Close())
		}
	}
	return nil
}

// without says that there is no tier, or not the one asked for.
func (o Options) without() string {
	if o.Tier == "" {
		return "cannot contain commands on this host: no sandbox tier can be had"
	}
	return fmt.Sprintf("cannot contain commands on this host by the sandbox tier %s, which is set", o.Tier)
}

// Tier implements sandbox.Host.
func (h *Host) Tier() sandbox.Tier { return h.Findings().Tier }

// Report implements sandbox.Host. It names no path of the host.
func (h *Host) Report() sandbox.Report { return h.survey.report(h.survey.of(h.tier)) }

// Findings is the report with its reasons in full, for whoever runs the service.
func (h *Host) Findings() sandbox.Report { return h.survey.findings(h.survey.of(h.tier)) }

// Close implements sandbox.Host.
func (h *Host) Close() error {
	return errors.Join(h.tier.Close(), h.launcher.Close(), h.groups.Close())
}

var _ sandbox.Host = (*Host)(nil)
