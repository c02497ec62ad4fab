package host

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"envapi/sandbox"
)

// Refusal says why this host is not good enough. Its text ends with the table
// that "envapi-http doctor" prints.
type Refusal struct {
	Findings sandbox.Report // with the reasons in full
	why      string
}

func (r *Refusal) Error() string { return r.why + "\n\n" + Table(r.Findings) }

// Table writes a report for people.
func Table(r sandbox.Report) string {
	var b strings.Builder
	b.WriteString("Sandbox tiers of this host, weakest first:\n")
	for _, t := range r.Tiers {
		writeTier(&b, t, r.Tier)
	}
	for _, t := range r.Tiers {
		if t.Available {
			fmt.Fprintf(&b, "\nWhat the %s tier holds here:\n", t.Tier)
			writeControls(&b, t.Controls)
		}
	}
	return b.String()
}

func writeTier(b *strings.Builder, t sandbox.TierReport, active sandbox.Tier) {
	state := "not available"
	switch {
	case t.Tier == active:
		state = "available, and used"
	case t.Available:
		state = "available"
	}
	fmt.Fprintf(b, "  %-10s %s\n", t.Tier, state)
	if !t.Available {
		fmt.Fprintf(b, "  %-10s why:       %s\n", "", oneLine(t.Reason))
		fmt.Fprintf(b, "  %-10s to change: %s\n", "", oneLine(t.Needs))
	}
}

func writeControls(b *strings.Builder, controls []sandbox.Control) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, c := range controls {
		enforced := "enforced"
		if !c.Enforced {
			enforced = "NOT ENFORCED"
		}
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\n", c.Name, enforced, oneLine(c.Detail))
	}
	_ = w.Flush()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
