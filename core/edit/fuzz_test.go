package edit_test

import (
	"bytes"
	"testing"

	"envapi/core/edit"
)

// FuzzEdit: edits never panic, are all made or none, and leave what they were
// given as it was.
func FuzzEdit(f *testing.F) {
	f.Add([]byte("a\r\nb\r\n"), "a\nb", "c\nd", "c", "e", false)
	f.Add([]byte("\xFF\xFEa\x00"), "a", "b", "", "", true)
	f.Add([]byte("    if x:\n        y\n"), "if x:\n    y", "z", "z", "", false)
	f.Add([]byte("caf\u00e9 &lt; \\n"), "cafe\u0301 < \n", "z", "z", "", false)
	f.Fuzz(func(t *testing.T, content []byte, old, put, old2, put2 string, all bool) {
		const room = 1 << 16
		before := bytes.Clone(content)
		result, err := edit.Apply(content, []edit.Edit{{Old: old, New: put, All: all}, {Old: old2, New: put2}}, room)
		if !bytes.Equal(content, before) {
			t.Fatal("the content was changed")
		}
		if err != nil {
			if result.Content != nil || len(err.Error()) > 4096+4*len(old) {
				t.Fatalf("with an error of %d bytes there is %q", len(err.Error()), result.Content)
			}
			return
		}
		if len(result.Content) > room {
			t.Fatalf("it makes %d bytes", len(result.Content))
		}
		if diff := edit.Diff("f", content, result.Content, 4096); len(diff) > 4096 || diff == "" && !bytes.Equal(content, result.Content) {
			t.Fatalf("its diff has %d bytes", len(diff))
		}
	})
}
