package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"envapi/sandbox"
	"envapi/sandbox/attack"
	"envapi/sandbox/host"
	"envapi/sandbox/landlock"
)

const (
	// attackerName makes envapi-http the program of the attacks, inside a box.
	attackerName = "doctor-attacker"
	// attackPatience bounds one attack; they take milliseconds.
	attackPatience = 20 * time.Second
	// attackProcesses is as many as an environment has by default.
	attackProcesses = 512
)

// attacks are what came of all of them, in one tier.
type attacks struct {
	Tier       sandbox.Tier `json:"tier"`
	Unexpected int          `json:"unexpected"` // how many came to something else than they must
	Verdicts   []verdict    `json:"verdicts"`
	None       string       `json:"none,omitempty"`    // why nothing was tried
	Outside    string       `json:"outside,omitempty"` // what of the bait was reached, as seen from outside
}

// verdict is what came of one attack.
type verdict struct {
	Attack  string   `json:"attack"`
	Tries   string   `json:"tries"`
	Said    string   `json:"said"`
	Want    []string `json:"want,omitempty"`
	Claimed bool     `json:"claimed"` // whether the tier says that it holds against it
	OK      bool     `json:"ok"`
}

var errInterrupted = errors.New("the doctor was ended before every attack was tried")

// attackFrom tries every attack from a box of the host's tier.
func (d doctor) attackFrom(ctx context.Context, h *host.Host) (*attacks, error) {
	box, program, err := d.attackBox(ctx, h)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(d.folder, "bait")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, errors.Join(err, box.Close())
	}
	bait, err := attack.Lay(folder)
	if err != nil {
		return nil, errors.Join(err, box.Close())
	}
	found := &attacks{Tier: h.Tier()}
	place := attack.Place{Tier: h.Tier(), Landlock: landlock.ABI()}
	for _, row := range attack.Rows() {
		if ctx.Err() == nil {
			found.add(ctx, box, program, place, row, bait)
		}
	}
	if ctx.Err() != nil { // what was not tried to its end says nothing
		return nil, errors.Join(errInterrupted, bait.Close(), box.Close())
	}
	if touched := bait.Touched(); touched != nil && place.Tier == sandbox.TierNamespace {
		found.Outside = touched.Error()
		found.Unexpected++
	}
	return found, errors.Join(bait.Close(), box.Close())
}

// attackBox makes a box whose workspace holds this program.
func (d doctor) attackBox(ctx context.Context, h *host.Host) (sandbox.Box, []string, error) {
	workspace := filepath.Join(d.folder, "workspace")
	if err := os.Mkdir(workspace, 0o700); err != nil {
		return nil, nil, err
	}
	name := filepath.Join(workspace, attackerName)
	if err := copyProgram(name); err != nil {
		return nil, nil, fmt.Errorf("cannot copy this program into a box: %w", err)
	}
	spec := sandbox.Spec{ID: "attack", Workspace: workspace, Limits: sandbox.Limits{Processes: attackProcesses}}
	if h.NeedsUID() {
		spec.UID = host.ProbeUID(h.Tier())
		for _, path := range []string{name, workspace} {
			if err := os.Chown(path, spec.UID, spec.UID); err != nil {
				return nil, nil, err
			}
		}
	}
	box, err := h.Open(ctx, spec)
	return box, []string{filepath.Join(h.WorkspacePath(workspace), attackerName), attackerName}, err
}

// copyProgram copies this program, which is one static file.
func copyProgram(to string) error {
	own, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer own.Close()
	copied, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700) //nolint:gosec // a program
	if err != nil {
		return err
	}
	_, err = io.Copy(copied, own)
	return errors.Join(err, copied.Close())
}

// add tries one attack. One that cannot be tried is not as expected.
func (a *attacks) add(ctx context.Context, box sandbox.Box, program []string, place attack.Place, row attack.Row, bait *attack.Bait) {
	ctx, cancel := context.WithTimeout(ctx, attackPatience)
	defer cancel()
	v := verdict{Attack: row.ID, Tries: row.Tries, Claimed: true}
	said, err := attack.Try(ctx, box, program, row, bait)
	if err != nil {
		v.Said = err.Error()
	} else {
		judged := attack.Judge(place, row, said)
		v.Said, v.Want, v.Claimed, v.OK = said, judged.Want, judged.Claimed, judged.OK
	}
	if !v.OK {
		a.Unexpected++
	}
	a.Verdicts = append(a.Verdicts, v)
}

// print writes the verdicts for people.
func (a *attacks) print(w io.Writer) error {
	if a.None != "" {
		_, err := fmt.Fprintf(w, "\nNo attack was tried: %s.\n", a.None)
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nAttacks from a box of the %s tier:\n", a.Tier)
	for _, v := range a.Verdicts {
		state := "held"
		switch {
		case !v.OK:
			state = "UNEXPECTED"
		case !v.Claimed:
			state = "not held here"
		}
		fmt.Fprintf(&b, "  %-13s  %s, %s: %s\n", state, v.Attack, v.Tries, v.Said)
		if len(v.Want) > 0 && !v.OK {
			fmt.Fprintf(&b, "  %-13s  it must be: %s\n", "", strings.Join(v.Want, ", or "))
		}
	}
	if a.Outside != "" {
		fmt.Fprintf(&b, "  UNEXPECTED, seen from outside: %s\n", a.Outside)
	}
	fmt.Fprintf(&b, "\n%d attacks, %d of them not as expected.\n", len(a.Verdicts), a.Unexpected)
	_, err := io.WriteString(w, b.String())
	return err
}
