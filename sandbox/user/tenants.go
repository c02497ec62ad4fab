package user

import (
	"fmt"
	"sync"

	"envapi/sandbox"
)

// tenants are who has which uid: one box at a time, since a box that is made
// ends everything that has its uid.
type tenants struct {
	mu    sync.Mutex
	byUID map[int]*tenant
}

// tenant is the box that has a uid.
type tenant struct {
	mu  sync.Mutex  // held while one box follows another
	box sandbox.Box // nil where none has it
}

func (t *tenants) of(uid int) *tenant {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byUID == nil {
		t.byUID = map[int]*tenant{}
	}
	if t.byUID[uid] == nil {
		t.byUID[uid] = &tenant{}
	}
	return t.byUID[uid]
}

// succeed ends the box that had the uid before, in good order, and makes the
// next one.
func (t *tenant) succeed(open func() (sandbox.Box, error)) (sandbox.Box, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.box != nil {
		if err := t.box.Close(); err != nil {
			return nil, fmt.Errorf("cannot make a box: another has its uid: %w", err)
		}
		t.box = nil
	}
	box, err := open()
	if err == nil {
		t.box = box
		go t.release(box)
	}
	return box, err
}

// release lets go of a box when it is gone, so that its memory can be used again.
func (t *tenant) release(box sandbox.Box) {
	<-box.Done()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.box == box {
		t.box = nil
	}
}
