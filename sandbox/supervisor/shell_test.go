package supervisor

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
)

// TestALineForABashThatHasEnded: one that ends at once may be done with before the
// first line is written.
func TestALineForABashThatHasEnded(t *testing.T) {
	read, write, err := newPipe(writeEnd, unix.O_DIRECT)
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{lines: write}
	if err := s.say("a line\n"); err != nil {
		t.Fatal(err)
	}
	for _, end := range []*os.File{read, write} {
		if err := end.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.say("a line\n"); !errors.Is(err, sandbox.ErrShellClosed) {
			t.Errorf("got %v", err)
		}
	}
}
