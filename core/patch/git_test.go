package patch_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"envapi/core/patch"
	"envapi/internal/require"
)

// repository is a git repository in a folder of the test's.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		require.Feature(t, "git", "it says what a patch means")
	}
	r := &repository{t, t.TempDir()}
	r.git("init", "-q")
	return r
}

func (r *repository) command(stdin []byte, args ...string) ([]byte, error) {
	c := exec.Command("git", args...)
	c.Dir = r.dir
	c.Stdin = bytes.NewReader(stdin)
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}
	return c.Output()
}

func (r *repository) git(args ...string) []byte {
	r.t.Helper()
	out, err := r.command(nil, args...)
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			r.t.Fatalf("git %v: %v: %s", args, err, exit.Stderr)
		}
		r.t.Fatalf("git %v: %v", args, err)
	}
	return out
}

// put makes the folder hold these files and no others.
func (r *repository) put(files files) {
	r.t.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != ".git" {
			if err := os.RemoveAll(filepath.Join(r.dir, e.Name())); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	for path, content := range files {
		full := filepath.Join(r.dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
}

// files reads what the folder holds.
func (r *repository) files() files {
	r.t.Helper()
	out := files{}
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" {
				return filepath.SkipDir
			}
			return nil
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(r.dir, path)
		out[name] = string(content)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// between is what git diff says of two sets of files.
func (r *repository) between(before, after files, options ...string) string {
	r.t.Helper()
	r.put(before)
	r.git("add", "-A", "-f")
	tree := strings.TrimSpace(string(r.git("write-tree")))
	r.put(after)
	r.git("add", "-A", "-f")
	return string(r.git(append(append([]string{"-c", "core.autocrlf=false", "diff", "--cached", "--no-color", "--binary"}, options...), tree)...))
}

// randomText is lines of few kinds, so that contexts repeat, with the ends that
// files have.
func randomText(r *rand.Rand) string {
	var lines []string
	for range r.IntN(40) {
		switch r.IntN(8) {
		case 0:
			lines = append(lines, "")
		case 1:
			lines = append(lines, "-- dashes")
		case 2:
			lines = append(lines, "++ plus", "@@ -1 +1 @@")
		default:
			lines = append(lines, fmt.Sprintf("line %d", r.IntN(60)))
		}
	}
	end := "\n"
	if r.IntN(6) == 0 {
		end = "\r\n"
	}
	text := strings.Join(lines, end)
	if r.IntN(3) > 0 && text != "" {
		text += end
	}
	return text
}

func changed(r *rand.Rand, text string) string {
	lines := strings.SplitAfter(text, "\n")
	for range 1 + r.IntN(4) {
		i := r.IntN(len(lines))
		switch r.IntN(3) {
		case 0:
			lines = append(lines[:i], lines[i+1:]...)
		case 1:
			lines = append(lines[:i], append([]string{fmt.Sprintf("new %d\n", r.IntN(50))}, lines[i:]...)...)
		default:
			lines[i] = fmt.Sprintf("other %d\n", r.IntN(50))
		}
		if len(lines) == 0 {
			return ""
		}
	}
	return strings.Join(lines, "")
}

var randomNames = []string{"a", "b.txt", "dir/c d", "dir/ünï", "dir/deep/\"quoted\"", "tab\there", "b/a/b", "new\nline", "back\\slash"}

func randomTrees(r *rand.Rand) (before, after files) {
	before, after = files{}, files{}
	for _, name := range randomNames {
		text := randomText(r)
		switch r.IntN(7) {
		case 0:
			before[name] = text
		case 1:
			after[name] = text
		case 2:
			before[name] = text
			after[name+".moved"] = changed(r, text)
		case 3:
			binary := make([]byte, 300+r.IntN(3000))
			for i := range binary {
				binary[i] = byte(r.IntN(256))
			}
			before[name] = string(binary)
			binary[len(binary)/2]++
			after[name] = string(binary)
		case 4:
			before[name], after[name] = text, text
		default:
			before[name], after[name] = text, changed(r, text)
		}
	}
	return before, after
}

func TestWhatGitDiffsIsAppliedAsGitAppliesIt(t *testing.T) {
	r := newRepository(t)
	for seed := range uint64(require.Rounds(t, 60)) {
		random := rand.New(rand.NewPCG(5, seed))
		before, after := randomTrees(random)
		options := [][]string{nil, {"-M"}, {"-C", "--find-copies-harder"}, {"-U1"}, {"-M", "--full-index"}, {"--no-renames", "--patience"}, {"--no-prefix"}}[random.IntN(7)]
		text := r.between(before, after, options...)
		if text == "" {
			continue
		}
		p, err := patch.Parse(text, nil)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		got, result, err := before.patched(p)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		after.mustBe(t, got, fmt.Sprintf("seed %d %v\n%s", seed, options, text))
		if result.Already {
			t.Errorf("seed %d: it is said to be applied already", seed)
		}
		again, result, err := got.patched(p)
		if err != nil {
			t.Fatalf("seed %d: applied again: %v\n%s", seed, err, text)
		}
		after.mustBe(t, again, fmt.Sprintf("seed %d, applied again\n%s", seed, text))
		if !result.Already || len(result.Writes) > 0 {
			t.Errorf("seed %d: applied again, it changes something: %+v\n%s", seed, result.Sections, text)
		}
	}
}

// TestAPatchForOtherFilesIsAppliedOnlyAsGitWould: where git apply takes a patch
// for files that it was not made from, so do we, or we say why not; and if we
// take it where git does not, what git would have to guess must be unambiguous.
func TestAPatchForOtherFilesIsAppliedOnlyAsGitWould(t *testing.T) {
	r := newRepository(t)
	both, refused, more := 0, 0, 0
	for seed := range uint64(require.Rounds(t, 120)) {
		random := rand.New(rand.NewPCG(6, seed))
		text := randomText(random)
		before := files{"f": text}
		diff := r.between(before, files{"f": changed(random, text)})
		if diff == "" {
			continue
		}
		other := files{"f": changed(random, text)}
		p, err := patch.Parse(diff, nil)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, diff)
		}
		got, result, err := other.patched(p)
		r.put(other)
		_, gitErr := r.command([]byte(diff), "apply", "-p1", "-")
		switch {
		case gitErr != nil:
			if err == nil && !result.Already {
				more++
			}
		case err != nil:
			refused++
		case result.Already:
			t.Errorf("seed %d: git applies it, we say that it is applied\n%s\n%q", seed, diff, other["f"])
		default:
			both++
			r.files().mustBe(t, got, fmt.Sprintf("seed %d\n%s", seed, diff))
		}
	}
	t.Logf("applied by both %d, by git alone %d, by us alone %d", both, refused, more)
	if both == 0 {
		t.Error("none was applied by both")
	}
}
