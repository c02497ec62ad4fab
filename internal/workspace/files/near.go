package files

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/text/unicode/norm"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

// mostNear is how many names of a directory are looked at for one that was meant.
const mostNear = 10_000

// NotFound says that nothing stands at a place. Where a name is there that looks the
// same (another normal form of Unicode) or differs in case only, it says so: names are
// bytes, and no two are ever taken for one.
func (t *Tree) NotFound(path string, at *inside.Place) error {
	if at.Led != "" {
		return core.Errorf(core.CodeNotFound, "there is nothing where the link %q leads: %q", path, at.Led).With("path", path)
	}
	near := t.near(at)
	if near == "" {
		return core.Errorf(core.CodeNotFound, "there is no %q", path).With("path", path)
	}
	return core.Errorf(core.CodeNotFound,
		"there is no %q; there is %q beside it, in other bytes (%+q and not %+q)", path, near, near, at.Name).
		With("path", path)
}

// withoutParents says of something new why it has no place: there is no directory for it.
func withoutParents(path string, err error) error {
	var known *core.Error
	if !errors.As(err, &known) || known.Code != core.CodeNotFound {
		return err
	}
	return core.Errorf(core.CodeNotFound, "cannot make %q: the directory that it would be in is not there; make that first, or set parents", path).
		With("path", path).Because(err)
}

func (t *Tree) near(at *inside.Place) (found string) {
	if len(at.Missing) > 0 {
		return ""
	}
	_ = t.root.As(func() error {
		dir, err := at.OpenParent()
		if err != nil {
			return err
		}
		defer dir.Close()
		found = nearest(dir, at.Name)
		return nil
	})
	return found
}

func nearest(dir *os.File, want string) string {
	names, _ := dir.Readdirnames(mostNear)
	form := norm.NFC.String(want)
	for _, name := range names {
		if strings.EqualFold(norm.NFC.String(name), form) {
			return name
		}
	}
	return ""
}
