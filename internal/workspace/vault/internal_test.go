package vault

import "testing"

// HoldFewNames makes the walk read directories again and again.
func HoldFewNames(t testing.TB) {
	before := mostNames
	mostNames = 2 * fewestNames
	t.Cleanup(func() { mostNames = before })
}

// Shallow makes trees of more than depth levels too deep.
func Shallow(t testing.TB, depth int) {
	before := mostDepth
	mostDepth = depth
	t.Cleanup(func() { mostDepth = before })
}

// Names of records, for archives that are made by hand.
const (
	RecordVersion = recordVersion
	RecordDepth   = recordDepth
	RecordLink    = recordLink
	RecordSize    = recordSize
	RecordMap     = recordMap
	RecordMore    = recordMore
	RecordEntries = recordEntries
)
