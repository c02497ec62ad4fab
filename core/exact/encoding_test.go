package exact_test

import (
	"testing"

	"envapi/core/exact"
)

func TestWide(t *testing.T) {
	for content, want := range map[string]string{
		"": "", "\xFF": "", "a\xFF\xFE": "", "\xEF\xBB\xBFa": "",
		"\xFF\xFE":          "UTF-16 (little endian)",
		"\xFE\xFF\x00a":     "UTF-16 (big endian)",
		"\xFF\xFE\x00\x00a": "UTF-32 (little endian)",
		"\x00\x00\xFE\xFF":  "UTF-32 (big endian)",
	} {
		if got := exact.Wide([]byte(content)); got != want {
			t.Errorf("%q is %q, want %q", content, got, want)
		}
	}
}

func TestMixes(t *testing.T) {
	for _, c := range []struct {
		name, content, old, put string
		want                    bool
	}{
		{"into UTF-8", "caf\u00e9 x", "x", "\u00e9", false},
		{"ASCII into Latin-1", "caf\xe9 x", "x", "y", false},
		{"UTF-8 into Latin-1", "caf\xe9 x", "x", "\u00e9", true},
		{"in place of UTF-8 among other bytes", "\xff \u00e9", "\u00e9", "\u00e8", false},
		{"bytes that are not UTF-8 either", "caf\xe9 x", "x", "\xe8", false},
	} {
		if got := exact.Mixes([]byte(c.content), c.old, c.put); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
