package patch_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"envapi/core/patch"
)

// TestWhatGitAndDiffWroteIsRead: testdata is what git 2.39 and GNU diff 3.8 made
// of the same change.
func TestWhatGitAndDiffWroteIsRead(t *testing.T) {
	all := []string{
		"modified blob.bin", "modified crlf.txt", "created d/created", "modified d/numbers.txt", "deleted empty", "renamed new.txt",
		"modified noend.txt", "modified run.sh", "modified sp ace", `modified ünï "q"`,
	}
	some := []string{"created d/created", "modified d/numbers.txt"}
	for _, c := range []struct {
		name  string
		strip int
		want  []string
	}{
		{"git", -1, all},
		{"format-patch", -1, all},
		{"noprefix", -1, some},
		{"crlf", -1, some},
		{"diff", 1, some},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := os.ReadFile("testdata/" + c.name + ".patch")
			if err != nil {
				t.Fatal(err)
			}
			strip := &c.strip
			if c.strip < 0 {
				strip = nil
			}
			p, err := patch.Parse(string(text), strip)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range p.Files {
				f := &p.Files[i]
				got = append(got, string(f.Kind)+" "+f.New)
				if f.Kind == patch.Deleted {
					got[i] += f.Old
				}
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("it is about\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if len(c.want) < len(all) {
				mustChangeNumbers(t, p, c.name)
			}
		})
	}
}

func mustChangeNumbers(t *testing.T, p *patch.Patch, name string) {
	t.Helper()
	var numbers strings.Builder
	for i := range 40 {
		fmt.Fprintln(&numbers, i+1)
	}
	before := files{"d/numbers.txt": numbers.String()}
	got, _, err := before.patched(p)
	if err != nil {
		t.Fatal(err)
	}
	created := "n\n"
	if name == "crlf" {
		created = "n\r\n" // a new file is as the patch was sent
	}
	files{
		"d/created":     created,
		"d/numbers.txt": strings.NewReplacer("\n7\n", "\nseven\n", "\n33\n", "\nthirty-three\n").Replace(numbers.String()),
	}.mustBe(t, got, "patched")
}
