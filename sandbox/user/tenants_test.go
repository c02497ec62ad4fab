package user

import (
	"testing"
	"time"

	"envapi/sandbox"
)

// gone is a box that can only end.
type gone struct {
	sandbox.Box
	done chan struct{}
}

func (g gone) Done() <-chan struct{} { return g.done }

// A box holds a lot of memory, and there are as many tenants as uids.
func TestABoxThatIsGoneIsNotKept(t *testing.T) {
	var all tenants
	box := gone{done: make(chan struct{})}
	if _, err := all.of(7).succeed(func() (sandbox.Box, error) { return box, nil }); err != nil {
		t.Fatal(err)
	}
	kept := func() bool {
		tenant := all.of(7)
		tenant.mu.Lock()
		defer tenant.mu.Unlock()
		return tenant.box != nil
	}
	if !kept() {
		t.Error("a box that is there is not known")
	}
	close(box.done)
	for deadline := time.Now().Add(30 * time.Second); kept(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is kept")
		}
	}
}
