package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"envapi/sandbox"
)

const (
	// probePatience bounds the probe of one tier.
	probePatience = 10 * time.Second
	// probeUIDs is the lowest host uid of a probe's box, as root: above those of
	// environments and of containers, and nobody's on a usual host.
	probeUIDs = 2_000_000_000
	// probeProcesses is enough for the probe's script.
	probeProcesses = 64
)

// probe makes a box of a tier, runs a program in it that tries to get out, takes
// the box down, and gives the tier's controls as they were found. Its error says
// why the tier cannot be had.
func probe(ctx context.Context, name sandbox.Tier, t tier, o Options) ([]sandbox.Control, error) {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	dir, err := os.MkdirTemp(o.Private, "probe-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder to probe in: %w", err)
	}
	defer os.RemoveAll(dir)
	spec, err := probeFolder(name, t, dir)
	if err != nil {
		return nil, err
	}
	box, err := t.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	found, err := tryOut(ctx, box, dir)
	if err = errors.Join(err, box.Close()); err != nil {
		return nil, err
	}
	p := place{tier: name, facts: found, claimed: t.Controls()}
	if err := p.escape(); err != nil {
		return nil, err
	}
	return p.controls(), nil
}

// ProbeUID gives the host uid of a tier's probe. It is of this process alone, since
// in the user tier a box ends whatever else has its uid.
func ProbeUID(name sandbox.Tier) int {
	return probeUIDs + os.Getpid()*len(sandbox.Tiers) + strength(name)
}

// probeFolder makes the workspace of the probe and the canaries beside it.
func probeFolder(name sandbox.Tier, t tier, dir string) (sandbox.Spec, error) {
	spec := sandbox.Spec{ID: "probe", Workspace: filepath.Join(dir, "workspace"), Limits: sandbox.Limits{Processes: probeProcesses}}
	//nolint:gosec // as in the data folder, another uid must reach what is its own in it
	if err := os.Chmod(dir, 0o711); err != nil {
		return spec, fmt.Errorf("cannot open a folder to probe in: %w", err)
	}
	if err := os.Mkdir(spec.Workspace, 0o700); err != nil {
		return spec, fmt.Errorf("cannot make a workspace to probe with: %w", err)
	}
	for _, canary := range []struct {
		name string
		mode os.FileMode
	}{{"canary", 0o600}, {"open-canary", 0o644}} {
		if err := os.WriteFile(filepath.Join(dir, canary.name), []byte("canary\n"), canary.mode); err != nil {
			return spec, fmt.Errorf("cannot make a file to probe with: %w", err)
		}
	}
	if t.NeedsUID() {
		spec.UID = ProbeUID(name)
	}
	if t.NeedsUID() && os.Geteuid() == 0 { // else the tier says why it cannot be had
		if err := os.Chown(spec.Workspace, spec.UID, spec.UID); err != nil {
			return spec, fmt.Errorf("cannot give a workspace to a uid: %w", err)
		}
	}
	return spec, nil
}

// tryOut runs the script to its end.
func tryOut(ctx context.Context, box sandbox.Box, dir string) (facts, error) {
	var said, wrong bytes.Buffer
	p, err := box.Start(ctx, sandbox.Command{Script: probeScript, Stdout: &said, Stderr: &wrong, Env: map[string]string{
		"CANARY": filepath.Join(dir, "canary"), "OPEN_CANARY": filepath.Join(dir, "open-canary"),
		"SERVICE": strconv.Itoa(os.Getpid()),
	}})
	if err != nil {
		return nil, fmt.Errorf("cannot run a program: %w", err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return nil, errors.New("cannot run a program: it does not end")
	}
	found := parseFacts(said.String())
	if found.last("end") != "reached" {
		r := p.Result()
		return nil, fmt.Errorf("cannot run a program: it ended early, with code %d, signal %q, saying %.200q", r.ExitCode, r.Signal, wrong.String())
	}
	return found, nil
}
