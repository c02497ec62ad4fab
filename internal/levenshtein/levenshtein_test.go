package levenshtein

import (
	"fmt"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"name", "name", 0},
		{"", "name", 4},
		{"nam", "name", 1},
		{"lname", "name", 1},
		{"nbme", "name", 1},
		{"mane", "name", 2},
		{"kitten", "sitting", 3},
		{"sunday", "saturday", 3},
	} {
		t.Run(fmt.Sprintf("%q %q", c.a, c.b), func(t *testing.T) {
			if got := Distance(c.a, c.b); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
			if got := Distance(c.b, c.a); got != c.want {
				t.Errorf("the other way round: got %d, want %d", got, c.want)
			}
		})
	}
}
