package app

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"envapi/core"
	"envapi/internal/config"
	"envapi/sandbox"
	"envapi/sandbox/host"
)

const usageDoctor = `envapi-http doctor tries what can contain commands on this host, as the service
does at its start, and says what was found: which tiers there are, what each
holds, and what would have to change for those that there are not.

  envapi-http doctor            a table for people
  envapi-http doctor --json     the same for programs
  envapi-http doctor --attack   and everything that is known to try a way out
      --tier TIER               out of this tier, not the one that is used

It reads the settings of the service and touches nothing of it: it works beside a
running one, needs no keyring, and removes what it makes. It exits with 0 if the
service would start with these settings and every attack came to what it should,
else with 1.
`

// doctor is one run of the command.
type doctor struct {
	config config.Config
	json   bool
	attack bool
	tier   sandbox.Tier
	folder string // its own, removed at the end
}

// findings are what the doctor says. The report has its reasons in full.
type findings struct {
	Sandbox sandbox.Report `json:"sandbox"`
	MinTier sandbox.Tier   `json:"min_tier,omitempty"`
	Starts  bool           `json:"starts"` // whether the service would, with these settings
	Attacks *attacks       `json:"attacks,omitempty"`
}

// healthy says whether there is nothing to complain about.
func (f findings) healthy() bool {
	return f.Starts && (f.Attacks == nil || f.Attacks.Unexpected == 0 && f.Attacks.None == "")
}

// runDoctor is "envapi-http doctor"; it gives the exit code.
func runDoctor(ctx context.Context, p Process) int {
	d, code, done := parseDoctor(p)
	if done {
		return code
	}
	var err error
	d.config, err = config.Load(config.Source{
		Program: config.ProgramDoctor, Environ: p.Environ, Dir: p.Dir, Root: os.Geteuid() == 0,
	})
	if err != nil {
		return fail(config.ProgramDoctor, p, "cannot read the settings", err)
	}
	if d.folder, err = doctorFolder(); err != nil {
		return fail(config.ProgramDoctor, p, "cannot look at this host", err)
	}
	found, err := d.look(ctx)
	if err = errors.Join(err, os.RemoveAll(d.folder)); err != nil {
		return fail(config.ProgramDoctor, p, "cannot look at this host", err)
	}
	if err := d.print(p.Stdout, found); err != nil {
		return fail(config.ProgramDoctor, p, "cannot say what was found", err)
	}
	if !found.healthy() {
		return 1
	}
	return 0
}

// parseDoctor reads the command line behind the word.
func parseDoctor(p Process) (d doctor, code int, done bool) {
	define := func(flags *flag.FlagSet) {
		flags.BoolVar(&d.json, "json", false, "")
		flags.BoolVar(&d.attack, "attack", false, "")
		flags.StringVar((*string)(&d.tier), "tier", "", "")
	}
	code, done = parseFlags(config.ProgramDoctor, usageDoctor, p, p.Args[1:], define, func(rest []string) error {
		switch {
		case len(rest) > 0:
			return noArguments(rest)
		case d.tier != "" && !slices.Contains(sandbox.Tiers, d.tier):
			return fmt.Errorf("there is no tier %q", d.tier)
		case d.tier != "" && !d.attack:
			return errors.New("--tier says which tier to attack, so it needs --attack")
		}
		return nil
	})
	return d, code, done
}

// doctorFolder makes a folder that the users of the user tier may pass through.
func doctorFolder() (string, error) {
	dir, err := os.MkdirTemp("", "envapi-doctor-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711) //nolint:gosec // what is secret in it is closed itself
}

// look probes the host, and attacks a tier where that is asked for.
func (d doctor) look(ctx context.Context) (findings, error) {
	tier := d.tier
	if d.attack {
		tier = cmp.Or(tier, d.config.SandboxTier)
	}
	h, err := host.New(ctx, host.Options{
		Tier: tier, Rootfs: d.config.Rootfs, CommandPath: d.config.CommandPath,
		Private: d.folder, Log: slog.New(slog.DiscardHandler),
	})
	var refusal *host.Refusal
	if errors.As(err, &refusal) {
		found := d.judge(refusal.Findings)
		if d.attack {
			found.Attacks = &attacks{Tier: tier, None: "this host cannot have the tier"}
		}
		return found, nil
	}
	if err != nil {
		return findings{}, err
	}
	found := d.judge(h.Findings())
	if d.attack {
		found.Attacks, err = d.attackFrom(ctx, h)
	}
	return found, errors.Join(err, h.Close())
}

// judge says whether the service would start on such a host.
func (d doctor) judge(r sandbox.Report) findings {
	r = core.WithDisk(r) // as the service reports it
	f := findings{Sandbox: r, MinTier: d.config.MinSandboxTier}
	for _, t := range r.Tiers { // weakest first
		asked := d.config.SandboxTier == "" || d.config.SandboxTier == t.Tier
		strong := slices.Index(sandbox.Tiers, t.Tier) >= slices.Index(sandbox.Tiers, d.config.MinSandboxTier)
		if t.Available && asked && strong {
			f.Starts, f.Sandbox.Tier, f.Sandbox.Controls = true, t.Tier, t.Controls
		}
	}
	if !f.Starts {
		f.Sandbox.Tier, f.Sandbox.Controls = "", nil
	}
	return f
}

func (d doctor) print(w io.Writer, f findings) error {
	if d.json {
		return printJSON(w, f)
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n", host.Table(f.Sandbox), d.verdict(f))
	if err == nil && f.Attacks != nil {
		err = f.Attacks.print(w)
	}
	return err
}

// verdict says in a sentence what becomes of a start.
func (d doctor) verdict(f findings) string {
	var asked string
	if d.config.MinSandboxTier != "" {
		asked += " with ENVAPI_MIN_SANDBOX_TIER=" + string(d.config.MinSandboxTier)
	}
	if d.config.SandboxTier != "" {
		asked += " with ENVAPI_SANDBOX_TIER=" + string(d.config.SandboxTier)
	}
	switch {
	case !f.Starts && asked == "":
		return "The service cannot start here: no tier is available."
	case !f.Starts:
		return "The service would NOT start here" + asked + "."
	default:
		return fmt.Sprintf("The service starts here%s: commands are contained by the %s tier.", asked, f.Sandbox.Tier)
	}
}
