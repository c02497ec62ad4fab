package supervisor

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// TestAMapIsWrittenOnceItMayBe: for a moment of exec the files of a process are root's.
func TestAMapIsWrittenOnceItMayBe(t *testing.T) {
	refusals := 3
	write := func() error {
		if refusals == 0 {
			return nil
		}
		refusals--
		return &fs.PathError{Op: "open", Path: "uid_map", Err: unix.EACCES}
	}
	if err := onceOwn(time.Minute, write); err != nil || refusals != 0 {
		t.Errorf("got %v, %d refusals before it may", err, refusals)
	}
	refusals = math.MaxInt
	if err := onceOwn(0, write); !errors.Is(err, unix.EACCES) {
		t.Errorf("where it never may: %v", err)
	}
	other := errors.New("something else")
	if err := onceOwn(time.Minute, func() error { return other }); !errors.Is(err, other) {
		t.Errorf("got %v", err)
	}
}
