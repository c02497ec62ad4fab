package watch

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
)

// What was read of moves may be older than what is known: a directory then seems to be
// below itself, and everything that goes up from it would have no end.
func TestNoDirectoryIsBelowItself(t *testing.T) {
	w, a, b := known(t)
	w.attach(a, b, "x")
	if a.under(b) || !b.under(a) {
		t.Error("there is a circle")
	}
	if events, err := w.queue.take(); err != nil || len(events) != 1 || events[0].Type != core.FileOverflow {
		t.Errorf("got %+v, %v", events, err)
	}
}

// The same where it is found by its name.
func TestADirectoryIsNotFoundBelowItself(t *testing.T) {
	w, a, b := known(t)
	held, err := w.hold("a/b/x", unix.O_DIRECTORY)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if a.number, err = w.inotify.add(held); err != nil {
		t.Fatal(err)
	}
	w.directories[a.number] = a // as if it had been moved there
	if todo, err := w.enter(pair{b, "x"}, nil, false); err != nil || len(todo) != 0 {
		t.Errorf("got %+v, %v", todo, err)
	}
	if a.under(b) {
		t.Error("there is a circle")
	}
}

// known is a watch that knows of a directory a, and of b in it.
func known(t *testing.T) (w *watch, a, b *directory) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/a/b/x", 0o700); err != nil {
		t.Fatal(err)
	}
	top, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	i, err := newInstance()
	if err != nil {
		t.Fatal(err)
	}
	w = &watch{top: top, inotify: i, queue: newQueue(""), base: &directory{}, directories: map[int32]*directory{}, recursive: true, share: &share{room: newRoom()}}
	a, b = &directory{}, &directory{}
	a.attach(w.base, "a")
	b.attach(a, "b")
	t.Cleanup(func() {
		w.close()
		_ = top.Close()
	})
	return w, a, b
}

// So many files wait for their writer at most; then they are told of at once.
func TestTheFilesThatWaitForTheirWriterAreBounded(t *testing.T) {
	w, _, _ := known(t)
	w.waiting = map[key]waiting{}
	w.directories[w.base.number] = w.base
	for n := range 2 * mostWaiting {
		w.write(key{w.base, strconv.Itoa(n)})
	}
	if len(w.waiting) > mostWaiting {
		t.Errorf("%d wait", len(w.waiting))
	}
	if events, err := w.queue.take(); err != nil || len(events) != mostWaiting {
		t.Errorf("%d were told of, %v", len(events), err)
	}
}

// Where a directory is not where it is thought to be, it is said that nobody knows.
func TestWhatIsSomewhereElseIsToldAsLost(t *testing.T) {
	w, a, _ := known(t)
	if w.sure(a) { // what stands at its path is not known by its number
		t.Error("it is sure")
	}
	if events, err := w.queue.take(); err != nil || len(events) != 1 || events[0].Type != core.FileOverflow {
		t.Errorf("got %+v, %v", events, err)
	}
}
