package supervisor

import (
	"os"
	"testing"
)

func TestAnInitThatCannotBeExecutedIsTold(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	l := &Launcher{binary: null, starts: make(chan func()), spare: &spare{}}
	go l.run()
	defer l.Close()
	_, err = l.start(false)
	if err == nil || err.Error() != "cannot start the box init: cannot execute it: permission denied" {
		t.Errorf("got %v", err)
	}
}
