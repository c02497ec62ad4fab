package plain_test

import (
	"testing"

	"envapi/internal/plain"
)

func TestTextThatATerminalWouldObeyIsQuoted(t *testing.T) {
	for text, want := range map[string]string{
		`copy "ä b": it's full`:  `copy "ä b": it's full`,
		"\x1b]0;title\a":         `"\x1b]0;title\a"`,
		"two\nlines\tof a table": `"two\nlines\tof a table"`,
		"\u0085\u202e":           `"\u0085\u202e"`,
		"no text \xff":           `"no text \xff"`,
	} {
		if got := plain.Text(text); got != want {
			t.Errorf("got %s, and not %s", got, want)
		}
	}
}
