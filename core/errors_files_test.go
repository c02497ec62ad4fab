package core_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"envapi/core"
)

func TestAShortageOfDescriptorsIsNoMistake(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want core.Code
	}{
		"of the process": {fmt.Errorf("cannot: %w", &os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}), core.CodeUnavailable},
		"of the host":    {syscall.ENFILE, core.CodeUnavailable},
		"another":        {syscall.EIO, core.CodeInternal},
		"no number":      {errors.New("too many open files"), core.CodeInternal},
	} {
		e := core.AsError(c.err)
		if e.Code != c.want {
			t.Errorf("%s: %s", name, e.Code)
		}
		if _, told := e.Facts["retry_after_ms"]; told != (c.want == core.CodeUnavailable) {
			t.Errorf("%s: facts %v", name, e.Facts)
		}
	}
}
