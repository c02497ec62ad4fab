package files_test

import (
	"errors"
	"strings"
	"testing"

	"envapi/core"
)

func TestErrorsSayWhatToDo(t *testing.T) {
	k := newKit(t)
	k.put("file", "x", 0o644)
	k.put("dir/sub/file", "x", 0o644)
	k.link("none", "dangling")
	k.link("dangling", "twice")
	generous := core.CopyOptions{Limit: 1 << 20, Files: 100}
	over := generous
	over.Overwrite = true
	copied := func(source, destination string, o core.CopyOptions) error {
		_, _, err := k.tree.Copy(t.Context(), source, destination, o)
		return err
	}
	moved := func(source, destination string, o core.CopyOptions) error {
		_, err := k.tree.Move(t.Context(), source, destination, o)
		return err
	}
	made := func(path string) error {
		_, _, err := k.tree.MakeDirectory(t.Context(), path, false)
		return err
	}
	read := func(path string) error {
		_, err := k.read(path)
		return err
	}
	for _, c := range []struct {
		err  error
		code core.Code
		says string
	}{
		{copied("file", "x/y", generous), core.CodeNotFound, `"x/y": the directory that it would be in is not there; make that first, or set parents`},
		{moved("file", "x/y", generous), core.CodeNotFound, "set parents"},
		{made("x/y"), core.CodeNotFound, "set parents"},
		{k.write("x/y", ""), core.CodeNotFound, "set parents"},
		{copied("none", "y", generous), core.CodeNotFound, `there is no "none"`},
		{copied("file", "dir/sub/file", generous), core.CodeAlreadyExists, "set overwrite"},
		{copied("file", "dir/", generous), core.CodeAlreadyExists, `"dir/file"`},
		{moved("file", "dir", over), core.CodeIsADirectory, `"dir/file"`},
		{copied("dir/sub", "dir", over), core.CodeAlreadyExists, "nothing replaces"},
		{k.tree.Remove(t.Context(), "dir", false, core.Condition{}), core.CodeNotEmpty, "set recursive"},
		{read("dangling"), core.CodeNotFound, `the link "dangling" leads: "none"`},
		{read("twice"), core.CodeNotFound, `the link "twice" leads: "none"`},
	} {
		wantCode(t, c.err, c.code)
		var e *core.Error
		if errors.As(c.err, &e) && !strings.Contains(e.Detail, c.says) {
			t.Errorf("%q does not say %q", e.Detail, c.says)
		}
	}
}
