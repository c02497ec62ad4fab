package pattern_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"envapi/core/pattern"
)

func TestGlobs(t *testing.T) {
	for _, c := range []struct {
		glob, path string
		dir, want  bool
	}{
		{"*.md", "a/b/c.md", false, true},
		{"*.md", "c.md", false, true},
		{"/*.md", "c.md", false, true},
		{"/*.md", "a/c.md", false, false},
		{"./*.md", "a/c.md", false, false},
		{"**/*.md", "c.md", false, true},
		{"**/*.md", "a/b/c.md", false, true},
		{"a/*.md", "a/b/c.md", false, false},
		{"a/**/c.md", "a/c.md", false, true},
		{"a/**/c.md", "a/b/b/c.md", false, true},
		{"a/**", "a/b", false, true},
		{"a/**", "b/a/b", false, false},
		{"*", ".hidden", false, true},
		{"?", "é", false, true},
		{"[!a].x", "b.x", false, true},
		{"{a,b/c}.x", "b/c.x", false, true},
		{"*.{js,ts}", "d/x.ts", false, true},
		{`\*`, "*", false, true},
		{`\*`, "a", false, false},
		{`\!x`, "!x", false, true},
		{"src/", "a/src", true, true},
		{"src/", "a/src", false, false},
		{"-77", "-77", false, true},
		{"--x", "d/--x", false, true},
		{"a\nb", "a\nb", false, true},
		{"%?#", "%x#", false, true},
		{"a***", "a", false, true},
		{"a/***", "a/b/c", false, false},
		{`a\***`, "a*", false, true},
		{"**/**", "a", false, true},
		{"a/**/**", "a", true, false},
		{"a/**", "a", true, false},
		{"a*/**", "a", true, false},
		{"a/**/**", "a/b", true, true},
	} {
		set, err := pattern.CompileGlobs([]string{c.glob})
		if err != nil {
			t.Errorf("%q: %v", c.glob, err)
			continue
		}
		if got := set.Match(c.path, c.dir); got != c.want {
			t.Errorf("%q and %q: got %v", c.glob, c.path, got)
		}
	}
}

func TestGlobsThatCannotBe(t *testing.T) {
	for _, text := range []string{"[a", "{a", `a\`, "!a", "../a", "a/../b", "a/./b", "..//", strings.Repeat("{a,b}", 20), strings.Repeat("{a,", 100) + strings.Repeat("}", 100) + strings.Repeat("{a,b}", 9)} {
		var wrong *pattern.Error
		if _, err := pattern.CompileGlobs([]string{text}); !errors.As(err, &wrong) {
			t.Errorf("%q: got %v", text, err)
		}
	}
	if _, err := pattern.CompileGlobs(strings.Split(strings.Repeat("a ", 100), " ")); err == nil {
		t.Error("a hundred globs are taken")
	}
}

func TestAGlobSaysWhereItCannotReach(t *testing.T) {
	set, err := pattern.CompileGlobs([]string{"src/a/*.go", "/doc/**"})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"src": true, "src/a": true, "src/a/b": true, "src/b": false, "doc": true, "doc/x": true, "x": false} {
		if got := set.Below(path); got != want {
			t.Errorf("%q: got %v", path, got)
		}
	}
}

var stars = regexp.MustCompile(`\*+`)

// plainGlob is the same in another way: as a regular expression. Braces, classes and
// escapes are left out.
func plainGlob(glob string) *regexp.Regexp {
	whole := strings.Contains(glob, "/")
	glob = strings.TrimPrefix(glob, "/")
	if !whole {
		glob = "**/" + stars.ReplaceAllString(glob, "*")
	}
	text := strings.Builder{}
	names := slices.CompactFunc(strings.Split(glob, "/"), func(name, next string) bool { return name == "**" && next == "**" })
	for i, name := range names {
		last := i == len(names)-1
		switch {
		case name == "**" && last && i == 0:
			text.WriteString(`.+`)
		case name == "**" && last:
			return regexp.MustCompile(`(?s)^` + strings.TrimSuffix(text.String(), "/") + `/.+$`)
		case name == "**":
			text.WriteString(`(.*/)?`)
		default:
			for _, r := range name {
				switch r {
				case '*':
					text.WriteString(`[^/]*`)
				case '?':
					text.WriteString(`[^/]`)
				default:
					text.WriteString(regexp.QuoteMeta(string(r)))
				}
			}
			if !last {
				text.WriteString("/")
			}
		}
	}
	return regexp.MustCompile(`(?s)^` + text.String() + `$`)
}

func FuzzGlob(f *testing.F) {
	for _, glob := range []string{"***", "a***", "a***", "**/**", "a/***", "*.md", "a/**/b", "**/*.go", "/a/*", "a?b", "**a/b**", "a/*/**"} {
		f.Add(glob, "a/b/c.md")
		f.Add(glob, "a/b")
	}
	f.Fuzz(func(t *testing.T, glob, path string) {
		set, err := pattern.CompileGlobs([]string{glob})
		if err != nil {
			var wrong *pattern.Error
			if !errors.As(err, &wrong) {
				t.Errorf("got %v", err)
			}
			return
		}
		got := set.Match(path, false)
		for i := range path {
			if got && path[i] == '/' && !set.Below(path[:i]) {
				t.Errorf("%q finds %q but does not look into %q", glob, path, path[:i])
			}
		}
		odd := strings.ContainsAny(glob+path, "[]{}\\\x00") || strings.Contains(glob, "//") || strings.HasPrefix(glob, "./") ||
			strings.HasSuffix(glob, "/") || strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || strings.Contains(path, "//")
		if odd || glob == "" || path == "" || strings.ToValidUTF8(glob+path, "") != glob+path {
			return
		}
		if want := plainGlob(glob).MatchString(path); got != want {
			t.Errorf("%q and %q: got %v", glob, path, got)
		}
	})
}
