package exact_test

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"envapi/core/exact"
	"envapi/internal/random"
)

// naive tries every place.
func naive(content, text []byte, overlap bool) []int {
	var found []int
	for at := 0; at+len(text) <= len(content); at++ {
		if bytes.Equal(content[at:at+len(text)], text) {
			found = append(found, at)
			if !overlap {
				at += len(text) - 1
			}
		}
	}
	return found
}

func TestEachFindsWhatTryingEveryPlaceFinds(t *testing.T) {
	random.Check(t, func(t *rapid.T) {
		few := rapid.SliceOfN(rapid.SampledFrom([]byte("ab")), 0, 60)
		content, text := few.Draw(t, "content"), few.Draw(t, "text")
		if len(text) == 0 {
			text = []byte("a")
		}
		text = text[:min(len(text), rapid.IntRange(1, 6).Draw(t, "length"))]
		overlap := rapid.Bool().Draw(t, "overlap")
		var got []int
		exact.Each(content, text, overlap, func(at int) bool { got = append(got, at); return true })
		if want := naive(content, text, overlap); !slices.Equal(got, want) {
			t.Fatalf("%q in %q stands at %v, want %v", text, content, got, want)
		}
	})
}

func TestEachStopsWhereItIsTold(t *testing.T) {
	n := 0
	exact.Each([]byte("aaaa"), []byte("a"), true, func(int) bool { n++; return n < 2 })
	if n != 2 {
		t.Errorf("it visited %d places, want 2", n)
	}
}

func TestNothingStandsNowhere(t *testing.T) {
	for _, c := range [][2]string{{"abc", ""}, {"", "a"}, {"ab", "abc"}} {
		exact.Each([]byte(c[0]), []byte(c[1]), true, func(at int) bool { t.Errorf("%q in %q stands at %d", c[1], c[0], at); return true })
	}
}
