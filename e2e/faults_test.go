package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// faultCase is an operation that is killed at each of its steps.
type faultCase struct {
	name      string
	prepare   string // a script, beside theTree
	archived  bool   // whether the environment is archived before
	operation string
	in        object
	keyed     bool // whether the same call again, with its key, gives the same answer
	// What becomes of the environment, and whether there is another one afterwards with
	// nothing in it, or with a copy.
	becomes string // a state, or "gone"
	empty   bool
	makes   string // "empty" or "copy"
	files   bool   // whether it changes files, and with them times of directories
}

var faultCases = []faultCase{
	{name: "create", operation: "create_environment", keyed: true, becomes: "active", makes: "empty"},
	{name: "fork", operation: "fork_environment", keyed: true, becomes: "active", makes: "copy"},
	{name: "reset", operation: "reset_environment", becomes: "active", empty: true},
	{name: "reset of an archived one", archived: true, operation: "reset_environment", becomes: "active", empty: true},
	{name: "archive", operation: "archive_environment", becomes: "archived"},
	{name: "restore", archived: true, operation: "restore_environment", becomes: "active"},
	{name: "delete", operation: "delete_environment", becomes: "gone"},
	{name: "delete of an archived one", archived: true, operation: "delete_environment", becomes: "gone"},
	{
		name: "write", operation: "write_file", becomes: "active", files: true,
		in: object{"path": "a/one", "content": "other\n"},
	},
	{
		name: "write below new directories", operation: "write_file", becomes: "active", files: true,
		in: object{"path": "new/er/file", "content": "other\n", "parents": true},
	},
	{
		name: "patch", operation: "apply_patch", becomes: "active", files: true,
		prepare: "echo 0 > f1; echo 0 > f2; echo x > odd",
		in: object{"patch": `--- a/f1
+++ b/f1
@@ -1 +1 @@
-0
+1
--- a/f2
+++ b/f2
@@ -1 +1 @@
-0
+1
--- /dev/null
+++ b/new/file
@@ -0,0 +1 @@
+x
--- a/odd
+++ /dev/null
@@ -1 +0,0 @@
-x
`},
	},
	{
		name: "move", operation: "move_file", becomes: "active", files: true,
		in: object{"source": "b", "destination": "c"},
	},
	{
		name: "copy of a directory that is closed", operation: "copy_file", becomes: "active", files: true,
		prepare: "mkdir -p shut/in; echo x > shut/in/f; chmod 0511 shut/in; chmod 0555 shut",
		in:      object{"source": "shut", "destination": "c"},
	},
	{
		name: "removal of a tree", operation: "delete_file", becomes: "active", files: true,
		in: object{"path": "b", "recursive": true},
	},
	{
		name: "new directories", operation: "make_directory", becomes: "active", files: true,
		in: object{"path": "x/y/z", "parents": true},
	},
}

// TestAKillAtEachStep kills the service at each step of each operation. Afterwards the
// old or the new is there, entire, and nothing else; what a start had to mend for that
// it has said; and the same call again succeeds. The steps are those that a run passes
// through, so that a new one is tested without being listed.
func TestAKillAtEachStep(t *testing.T) {
	for _, c := range faultCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newFaultBed(t, c)
			steps := b.traced()
			t.Logf("%d steps", len(steps))
			for _, step := range steps {
				b.killedAt(step)
			}
		})
	}
}

// TestAnErrorAtEachStep has each step of each operation fail with an I/O error, once. The
// call then fails, and the same call again does it; or it was done all the same, and what
// could not be removed the next start removes. The trash is tried again in a minute.
func TestAnErrorAtEachStep(t *testing.T) {
	for _, c := range faultCases {
		if c.archived != (c.name == "restore") || c.files && c.name != "patch" {
			continue // their steps are those of others
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newFaultBed(t, c)
			for _, step := range b.traced() {
				if !strings.HasPrefix(step.name, "store.committed") && !strings.HasPrefix(step.name, "workspace.trash") {
					b.failedAt(step)
				}
			}
		})
	}
}

// TestAStepThatFailsIsTold: a store that fails is none that lies, and one that is well
// again is used again.
func TestAStepThatFailsIsTold(t *testing.T) {
	t.Parallel()
	b := newFaultBed(t, faultCase{name: "fail", operation: "create_environment"})
	before := b.ids()
	b.arm("fail store.commit create the environment 1")
	_, err := b.s.call(context.Background(), "create_environment", object{"name": "n", "idempotency_key": "k"})
	isProblem(t, "internal|unavailable", "on a store that fails", nil, err)
	b.disarm()
	if after := b.ids(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("what failed made %v of %v", after, before)
	}
	b.s.must(t, "create_environment", object{"name": "n", "idempotency_key": "k"})
}

// call makes the case's call.
func (b *faultBed) call(ctx context.Context, p place) (object, error) {
	in := object{}
	for name, value := range b.in {
		in[name] = value
	}
	if b.keyed {
		in["name"], in["idempotency_key"] = "made", "key of "+p.id
	}
	if b.operation != "create_environment" {
		in = p.in(in)
	}
	return p.rest.call(ctx, b.operation, in)
}

// again makes the call once more, after it was cut off: it must succeed, as far as there
// is something left to do it with.
func (b *faultBed) again(p place, at string, old bool) {
	b.t.Helper()
	var refused *problem
	var err error
	_ = eventually(func() error {
		_, err = b.call(b.t.Context(), p)
		if refused = nil; errors.As(err, &refused) && refused.Code == "environment_busy" {
			return err // it says when to try again
		}
		return nil
	})
	switch {
	case err == nil:
	case !old && b.becomes == "gone" && refused != nil && refused.Code == "not_found":
	case !old && b.files && refused != nil: // it was done: nothing is left to move, patch or remove
	default:
		b.t.Errorf("%s: the same call again: %v", at, err)
	}
}
