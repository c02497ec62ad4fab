package attack

import (
	"slices"
	"strings"

	"envapi/sandbox"
)

// Place is where an attack was tried.
type Place struct {
	Tier     sandbox.Tier
	Landlock int // the ABI that the tier uses; 0: none
}

// Expect is what an attack must say in each tier. Where the tier does not hold
// it, the verdict is empty: the attack is run and its verdict is shown, but not
// judged. Verdicts of which any will do are separated by " | ": the kernel's
// version, or who runs the service, decides between them.
type Expect struct {
	Directory, User, Namespace string
	// Landlock is the ABI from which on the tiers without namespaces hold it; 0
	// where they do without Landlock.
	Landlock int
}

// Judgement is what a verdict is worth.
type Judgement struct {
	// Claimed says whether the place claims to hold against the attack.
	Claimed bool
	// OK says whether the verdict is one of those that were expected. Where
	// nothing is claimed it is true.
	OK bool
	// Want are the expected verdicts.
	Want []string
}

// Judge compares what an attack said with what it must say.
func Judge(p Place, r Row, said string) Judgement {
	want := r.Expect.in(p)
	if want == "" {
		return Judgement{OK: true}
	}
	j := Judgement{Claimed: true, Want: strings.Split(want, " | ")}
	j.OK = slices.Contains(j.Want, strings.TrimSpace(said))
	return j
}

func (e Expect) in(p Place) string {
	if p.Tier == sandbox.TierNamespace {
		return e.Namespace
	}
	if p.Landlock < e.Landlock {
		return ""
	}
	if p.Tier == sandbox.TierUser {
		return e.User
	}
	return e.Directory
}

// everywhere is the same verdict in every tier, whatever Landlock can do.
func everywhere(verdict string) Expect { return Expect{verdict, verdict, verdict, 0} }
