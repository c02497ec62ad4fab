package core_test

import (
	"testing"

	"envapi/core"
)

// TestWhoSetNoConditionIsNotToldOfOne: where others change a file again and again, a
// caller without a condition is to try again, and one with a condition learns of it at
// once.
func TestWhoSetNoConditionIsNotToldOfOne(t *testing.T) {
	for _, c := range []struct {
		name    string
		refused bool
		code    core.Code
		tries   int
	}{
		{"without a condition", false, core.CodeUnavailable, core.ChangeTries},
		{"with one", true, core.CodeETagMismatch, 1},
	} {
		tries := 0
		err := core.UntilAlone(func() error {
			tries++
			return core.Errorf(core.CodeETagMismatch, "it was changed")
		}, func(error) bool { return c.refused })
		e := wantCode(t, err, c.code)
		if tries != c.tries || (e.Facts["retry_after_ms"] == nil) != c.refused {
			t.Errorf("%s: %d tries, facts %v", c.name, tries, e.Facts)
		}
	}
	tries := 0
	must(t, core.UntilAlone(func() error {
		if tries++; tries < 3 {
			return core.Errorf(core.CodeETagMismatch, "it was changed")
		}
		return nil
	}, func(error) bool { return false }))
}
