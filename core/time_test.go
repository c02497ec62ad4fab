package core_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"envapi/core"
	"envapi/internal/random"
)

// TestTimesAreWrittenAsTheLibraryWouldWriteThem: milliseconds, cut and not rounded.
func TestTimesAreWrittenAsTheLibraryWouldWriteThem(t *testing.T) {
	random.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).
			In(time.FixedZone("", rapid.IntRange(-50_000, 50_000).Draw(t, "zone")))
		got, err := core.Time{Time: at}.MarshalJSON()
		if want := at.UTC().Format(`"2006-01-02T15:04:05.000Z07:00"`); err != nil || string(got) != want {
			t.Fatalf("got %s (%v), want %s", got, err, want)
		}
	})
}
