package patch_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"envapi/core/patch"
)

// hold applies a patch to files that are all the same, and checks what must hold
// whatever it is: no panic, all or nothing, nothing changed that was given, no
// more than is allowed.
func hold(t *testing.T, text string, content []byte, strip int) {
	const room = 1 << 18
	var parts *int
	if strip >= 0 {
		parts = &strip
	}
	p, err := patch.Parse(text, parts)
	if err != nil {
		var r *patch.RejectedError
		if p != nil || !errors.As(err, &r) || r.Error() == "" {
			t.Fatalf("with the error %v there is %v", err, p)
		}
		return
	}
	given := bytes.Clone(content)
	result, err := p.Apply(func(path string) ([]byte, bool, error) {
		return given, len(path)%2 == 1, nil
	}, room)
	if !bytes.Equal(given, content) {
		t.Fatal("what was given is changed")
	}
	if err != nil {
		var r *patch.RejectedError
		if result != nil || !errors.As(err, &r) {
			t.Fatalf("with the error %v there is %v", err, result)
		}
		return
	}
	made := 0
	for _, w := range result.Writes {
		if !bytes.Equal(w.Content, content) {
			made += len(w.Content)
		}
	}
	if made > room || len(result.Sections) != len(p.Files) || result.Already && len(result.Writes) > 0 {
		t.Fatalf("it makes %d bytes, %d of %d sections, already: %v", made, len(result.Sections), len(p.Files), result.Already)
	}
}

// FuzzPatchUnified begins with what git and diff wrote.
func FuzzPatchUnified(f *testing.F) {
	names, err := filepath.Glob("testdata/*.patch")
	if err != nil || len(names) == 0 {
		f.Fatalf("there is no test data: %v", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), []byte("a\nb\r\nc"), 1)
	}
	f.Add(fileHead+"@@ -1,9 +1 @@\n-a\n+b\n\\ No newline at end of file\n", []byte("a"), -1)
	f.Fuzz(hold)
}

// FuzzPatchBegin puts what it tries between the lines of the other form.
func FuzzPatchBegin(f *testing.F) {
	f.Add("*** Update File: f\n@@ a\n-b\n+c\n*** End of File\n", []byte("a\nb\n"), -1)
	f.Add("*** Add File: n\n+a\n*** Delete File: f\n*** Update File: g\n*** Move to: hh\n", []byte("a"), 0)
	f.Add("*** Update File: f\n@@ a\n@@ b\n+c\n\n \n-d\r\n", []byte("a\r\nb\r\n"), 1)
	f.Fuzz(func(t *testing.T, text string, content []byte, strip int) {
		hold(t, begin+text+end, content, strip)
	})
}
