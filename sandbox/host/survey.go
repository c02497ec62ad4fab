package host

import (
	"context"
	"slices"
	"sync"

	"envapi/sandbox"
	"envapi/sandbox/cgroup"
	"envapi/sandbox/directory"
	"envapi/sandbox/landlock"
	"envapi/sandbox/namespace"
	"envapi/sandbox/supervisor"
	"envapi/sandbox/user"
)

// finding is what the probe of a tier came to.
type finding struct {
	name     sandbox.Tier
	tier     tier
	err      error             // why it cannot be had
	public   string            // the same for everybody
	needs    string            // what would have to change
	controls []sandbox.Control // where it can be had
}

// survey is what was found of every tier, weakest first.
type survey []finding

func strength(t sandbox.Tier) int { return slices.Index(sandbox.Tiers, t) }

// look probes the tiers, all at the same time: most of a probe is waiting for
// the kernel.
func look(ctx context.Context, l *supervisor.Launcher, g *cgroup.Parent, o Options) survey {
	found := make(survey, len(sandbox.Tiers))
	var probes sync.WaitGroup
	for i, name := range sandbox.Tiers {
		found[i] = finding{name: name, tier: newTier(name, l, g, landlock.ABI(), o)}
		probes.Go(func() {
			f := &found[i]
			if f.controls, f.err = probe(ctx, name, f.tier, o); f.err == nil {
				return
			}
			f.public, f.needs = o.withoutPaths(f.err.Error()), needs(name, f.err, thisHost())
			o.Log.Info("a sandbox tier is not available", "tier", name, "reason", f.err, "needs", f.needs)
		})
	}
	probes.Wait()
	return found
}

// newTier makes a tier that uses a Landlock ABI, 0 for none.
func newTier(name sandbox.Tier, l *supervisor.Launcher, g *cgroup.Parent, abi int, o Options) tier {
	switch name {
	case sandbox.TierNamespace:
		return namespace.New(namespace.Config{
			Launcher: l, Rootfs: o.Rootfs, Path: o.CommandPath, Private: o.Private, Groups: g, Log: o.Log,
		})
	case sandbox.TierUser:
		return user.New(user.Config{
			Launcher: l, Private: o.Private, Path: o.CommandPath, Landlock: abi, Groups: g, Log: o.Log,
		})
	default:
		return directory.New(directory.Config{
			Launcher: l, Private: o.Private, Path: o.CommandPath, Landlock: abi, Groups: g, Log: o.Log,
		})
	}
}

// strongest gives the strongest tier that can be had, or only the one asked for;
// nil where there is none.
func (s survey) strongest(only sandbox.Tier) *finding {
	for i := range slices.Backward(s) {
		if s[i].err == nil && (only == "" || only == s[i].name) {
			return &s[i]
		}
	}
	return nil
}

// of gives the finding about a tier that is in use.
func (s survey) of(t tier) *finding {
	i := slices.IndexFunc(s, func(f finding) bool { return f.tier == t })
	if i < 0 {
		return nil
	}
	return &s[i]
}

// report says to everybody what was found, with the active tier where there is
// one.
func (s survey) report(active *finding) sandbox.Report {
	var r sandbox.Report
	for _, f := range s {
		r.Tiers = append(r.Tiers, sandbox.TierReport{
			Tier: f.name, Available: f.err == nil, Reason: f.public, Needs: f.needs, Controls: f.controls,
		})
	}
	if active != nil {
		r.Tier, r.Controls = active.name, active.controls
		r.SingleAccount = active.name == sandbox.TierDirectory && landlock.ABI() == 0
	}
	return r
}

// findings is the report with its reasons in full.
func (s survey) findings(active *finding) sandbox.Report {
	r := s.report(active)
	for i, f := range s {
		if f.err != nil {
			r.Tiers[i].Reason = f.err.Error()
		}
	}
	return r
}
