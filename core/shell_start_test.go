package core_test

import (
	"strings"
	"testing"

	"envapi/core"
	"envapi/sandbox"
)

// A bash that is not fit to run commands is the caller's doing where there are
// variables of the caller's, and else a matter of the environment.
func TestOpenShellWhoseBashIsNotFit(t *testing.T) {
	for name, test := range map[string]struct {
		env  map[string]string
		fail error
		code core.Code
		says string
	}{
		"with variables":    {map[string]string{"PATH": "/nosuch"}, &sandbox.BashError{How: "ended at once, with 127"}, core.CodeInvalidArgument, "with 127: the PATH given"},
		"without":           {nil, &sandbox.BashError{How: "does not answer"}, core.CodeUnavailable, "bash does not answer: end what"},
		"gone with its box": {map[string]string{"A": "b"}, sandbox.ErrStartUnknown, core.CodeUnavailable, "open another"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			env := w.create()
			w.host.failStarts(test.fail)
			_, err := w.OpenShell(t.Context(), alice, core.OpenShellInput{EnvironmentID: env.ID, Env: test.env})
			if e := wantCode(t, err, test.code); !strings.Contains(e.Detail, test.says) {
				t.Errorf("it says %q, want %q", e.Detail, test.says)
			}
			w.host.failStarts(nil)
			w.shellIn(env.ID)
			if list, err := w.ListShells(t.Context(), alice, core.ListShellsInput{}); err != nil || len(list.Items) != 1 {
				t.Errorf("the one that was not opened is listed: %v, %v", list, err)
			}
		})
	}
}
