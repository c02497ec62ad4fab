package pattern_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"envapi/core/pattern"
	"envapi/internal/require"
)

// tree is a folder that git and we are asked about.
type tree struct {
	dir   string
	paths []string
	dirs  map[string]bool
}

func newTree(t testing.TB) *tree {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		require.Feature(t, "git", "its rules are what ours are compared with")
	}
	tr := &tree{dir: t.TempDir(), dirs: map[string]bool{}}
	if out, err := tr.git(nil, "init", "-q"); err != nil {
		t.Fatal(err, string(out))
	}
	names := []string{"a", "b", "ab", "a.b", "x y", "[a]", "é", `a\b`, "#a", "!b", "a ", ".c", "a-b", "\t", "AZ"}
	for _, n := range names {
		tr.file(t, n+"f")
		for _, m := range names {
			tr.file(t, n+"/"+m+"/a")
			tr.file(t, n+"/"+m+"/b.f")
			tr.file(t, n+"/"+m+"/c"+n+"/"+m)
		}
	}
	return tr
}

func (tr *tree) file(t testing.TB, name string) {
	t.Helper()
	for i := range name {
		if dir := name[:i]; name[i] == '/' && !tr.dirs[dir] {
			tr.dirs[dir] = true
			tr.paths = append(tr.paths, dir)
		}
	}
	full := filepath.Join(tr.dir, name)
	if tr.dirs[name] {
		return
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tr.paths = append(tr.paths, name)
}

func (tr *tree) git(stdin []byte, args ...string) ([]byte, error) {
	c := exec.CommandContext(context.Background(), "git", args...)
	c.Dir, c.Stdin = tr.dir, bytes.NewReader(stdin)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + tr.dir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	return c.Output()
}

// compare asks git and us about every path, with rules in the folder and in some
// below it.
func (tr *tree) compare(t *testing.T, rules map[string]string) {
	t.Helper()
	ours := map[string]*pattern.Ignore{}
	for dir, text := range rules {
		name := filepath.Join(tr.dir, dir, ".gitignore")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(name)
		ours[dir] = pattern.ParseIgnore([]byte(text))
	}
	out, err := tr.git([]byte(strings.Join(tr.paths, "\x00")+"\x00"), "check-ignore", "--no-index", "-z", "--stdin")
	if err != nil && len(out) > 0 {
		t.Fatal(err)
	}
	git := map[string]bool{}
	for name := range strings.SplitSeq(string(out), "\x00") {
		git[name] = true
	}
	for _, name := range tr.paths {
		if got := tr.excluded(ours, name); got != git[name] {
			t.Errorf("rules %q: git says %v of %q, we say %v", rules, git[name], name, got)
			return
		}
	}
}

// excluded asks as a walk does: from above, ending at what is excluded.
func (tr *tree) excluded(rules map[string]*pattern.Ignore, name string) bool {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		at := name[:i]
		for dir := at; dir != "."; {
			dir = filepath.Dir(dir)
			set := rules[dir]
			if set == nil {
				continue
			}
			v := set.Match(strings.TrimPrefix(at, strings.TrimPrefix(dir+"/", "./")), tr.dirs[at])
			if v == pattern.Excluded {
				return true
			}
			if v == pattern.Included {
				break
			}
		}
	}
	return false
}

func TestRulesAreThoseOfGit(t *testing.T) {
	tr := newTree(t)
	for _, text := range []string{
		"a", "/a", "a/", "a/a", "*.f", "!a\na", "a\n!a", "*\n!*/\n!*.f", "a/**\n!a/b/", "**/a", "a/**/a", "a/**", "**",
		"a**/b", "/**/b.f", "[ab]", "[!a]", "[]a]", "[a-", "[[:alpha:]]", "[[:nope:]]b", "[[:]a]", `\!b`, `\#a`, "#a", "!b",
		`a\ `, "a ", "a  ", "a\t", "x y", `x\ y`, "a\r\nb\r\n", "\xef\xbb\xbfa", "  ", "/", "//", "!", "!/", `\`, `a\`, `a\\b`,
		"é", "?", "??", "[é]", ".c", "a.*", "*a*b*", "a/*/a", "a/*", "*/a", "[a-c]", "[c-a]", `[\]a]`, "[[]a]", "a[/]b", "a?b",
		"**a", "a/**b", "***", "a/***/b", "[A-Z]Z", "a\x00b", "a-b", "[a-]-b", "/a/b/", "a//b", "a/./b", "./a",
	} {
		tr.compare(t, map[string]string{".": text})
		tr.compare(t, map[string]string{".": text + "\n"})
		tr.compare(t, map[string]string{".": "*\n!*/\n", "a": "!" + text, "a/b": text})
	}
}

// TestRulesAreThoseOfGitWhateverTheyAre makes rules up.
func TestRulesAreThoseOfGitWhateverTheyAre(t *testing.T) {
	tr := newTree(t)
	atoms := strings.Split("a|b|*|**|?|/|/|[ab]|[!a]|\\a|\\|.| |f|[a-c]|!|#|é|[]a]|[^a/]|[[:space:]]|\t|-|\n|\n", "|")
	r := rand.New(rand.NewPCG(1, 2))
	for range require.Rounds(t, 300) {
		rules := map[string]string{}
		for _, dir := range []string{".", "a", "ab/a"}[:1+r.IntN(3)] {
			text := ""
			for range 1 + r.IntN(8) {
				text += atoms[r.IntN(len(atoms))]
			}
			rules[dir] = text
		}
		tr.compare(t, rules)
	}
}

func FuzzIgnore(f *testing.F) {
	f.Add([]byte("a/**/b\n!a "), []byte("*[!a]"))
	tr := newTree(f)
	f.Fuzz(func(t *testing.T, above, below []byte) {
		if len(above)+len(below) > 200 {
			return
		}
		tr.compare(t, map[string]string{".": string(above), "a": string(below)})
	})
}

// TestRulesAreBounded: what a program inside writes there costs a bounded time.
func TestRulesAreBounded(t *testing.T) {
	path := strings.Repeat("a/", 200) + "b"
	for name, text := range map[string]string{
		"long":   strings.Repeat("#", pattern.MostIgnoreBytes) + "\nb",
		"many":   strings.Repeat("x\n", 20_000) + "b",
		"dear":   strings.Repeat("**/a/**/a/**/a/**/a/**/a/c\n", 5000) + "b",
		"a line": strings.Repeat("x", 5000) + "\nb",
	} {
		set := pattern.ParseIgnore([]byte(text))
		if !set.Cut() {
			t.Errorf("%s: it does not say that not all rules hold", name)
		}
		if got := set.Match(path, false); got != pattern.Unsaid {
			t.Errorf("%s: got %d", name, got)
		}
	}
	if pattern.ParseIgnore([]byte("a\nb")).Cut() {
		t.Error("a small file is cut")
	}
}
