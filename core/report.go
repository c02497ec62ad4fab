package core

import (
	"fmt"
	"slices"

	"envapi/sandbox"
)

// Report says what contains commands here: what the sandbox holds, and what this
// package holds beside it.
func (s *Service) Report() sandbox.Report { return WithDisk(s.Sandbox.Report()) }

// WithDisk adds to a report of the sandbox's, in every tier, how this package
// holds the disk.
func WithDisk(r sandbox.Report) sandbox.Report {
	r.Controls = withDisk(r.Controls)
	r.Tiers = slices.Clone(r.Tiers)
	for i, t := range r.Tiers {
		r.Tiers[i].Controls = withDisk(t.Controls)
	}
	return r
}

// withDisk leaves alone what is not there: a tier that cannot be had holds
// nothing.
func withDisk(controls []sandbox.Control) []sandbox.Control {
	if len(controls) == 0 {
		return controls
	}
	ownUID := false
	held := slices.DeleteFunc(slices.Clone(controls), func(c sandbox.Control) bool {
		ownUID = ownUID || c.Name == controlUID && c.Enforced
		return c.Name == controlDisk || c.Name == controlFiles
	})
	how := fmt.Sprintf("a watcher: counted every %v while something runs, and at once when much went away; who grows beyond the limit is killed", countPause)
	deleted := "; deleted files that are still open do not count, since environments share a uid"
	if ownUID {
		deleted = "; deleted files that are still open count too"
	}
	return append(held,
		sandbox.Control{Name: controlDisk, Enforced: true, Detail: how + deleted},
		sandbox.Control{Name: controlFiles, Enforced: true, Detail: how},
	)
}

// The names of the controls that this package holds, and of the sandbox's that
// decides how.
const (
	controlDisk  = "disk"
	controlFiles = "file_count"
	controlUID   = "uid"
)
