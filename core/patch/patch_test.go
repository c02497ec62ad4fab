package patch_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"envapi/core/patch"
)

// files is what files hold, by their paths.
type files map[string]string

const limit = 64 << 20

// patched gives the files as a patch makes them.
func (f files) patched(p *patch.Patch) (files, *patch.Result, error) {
	result, err := p.Apply(func(path string) ([]byte, bool, error) {
		content, there := f[path]
		return []byte(content), there, nil
	}, limit)
	if err != nil {
		return nil, nil, err
	}
	out := files{}
	maps.Copy(out, f)
	for _, w := range result.Writes {
		if w.Gone {
			delete(out, w.Path)
		} else {
			out[w.Path] = string(w.Content)
		}
	}
	return out, result, nil
}

func (f files) mustBe(t *testing.T, got files, what string) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(f)) {
		if content, there := got[path]; !there {
			t.Errorf("%s\n%q is missing", what, path)
		} else if content != f[path] {
			t.Errorf("%s\n%q holds\n%q, want\n%q", what, path, content, f[path])
		}
	}
	for path := range got {
		if _, wanted := f[path]; !wanted {
			t.Errorf("%s\n%q is there", what, path)
		}
	}
}

// rejected is the error that a patch is refused with.
func rejected(t *testing.T, err error) *patch.RejectedError {
	t.Helper()
	var r *patch.RejectedError
	if !errors.As(err, &r) {
		t.Fatalf("the error is %v, want a rejection", err)
	}
	return r
}
