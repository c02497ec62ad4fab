// Package random runs tests of properties on random inputs: on the same ones each time
// in "make test", whose answer must not hang on luck, and on others with
// -rapid.seed=NUMBER, as "make fuzz" does.
package random

import (
	"flag"
	"testing"

	"pgregory.net/rapid"
)

// Check tries the property. A failure says with which -rapid.seed it comes again.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	if seed := flag.Lookup("rapid.seed"); seed.Value.String() == seed.DefValue {
		_ = seed.Value.Set("1")
	}
	rapid.Check(t, property)
}
