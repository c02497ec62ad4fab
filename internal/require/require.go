// Package require decides between a skip and a failure. A test that needs
// something of the host asks for it here; where the environment variable
// ENVAPI_REQUIRE lists that feature, its absence is a failure, so that a run
// that is meant to cover it cannot pass by skipping.
//
// It checks nothing itself: the test has found out that the feature is absent.
package require

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Variable names the environment variable: features separated by commas, for
// example "userns,landlock".
const Variable = "ENVAPI_REQUIRE"

// Feature ends the test, which found that this host lacks the feature: skipped,
// or failed where the feature is required.
func Feature(t testing.TB, feature, reason string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv(Variable), ","), feature) {
		t.Fatalf("%s requires %q, which is absent: %s", Variable, feature, reason)
	}
	t.Skipf("needs %q: %s", feature, reason)
}
