package store

import (
	"maps"
	"sync"

	"envapi/core"
)

// mostRecalled is how many records are remembered: as many environments as a busy
// service works in at one time.
const mostRecalled = 4096

// recall remembers the records of environments that were read, until the next write of
// anything: every call asks whose an environment is, and asking SQLite takes longer
// than to read a small file.
type recall struct {
	mu      sync.Mutex
	writes  uint64
	records map[string]core.EnvironmentRecord
}

// of gives a record of the owner's. Where it is not remembered, now is what keep needs.
func (r *recall) of(o core.Owner, id string) (e core.EnvironmentRecord, known bool, now uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, known = r.records[id]
	if !known || e.Owner != o {
		return core.EnvironmentRecord{}, false, r.writes
	}
	e.Labels = maps.Clone(e.Labels)
	return e, true, r.writes
}

// keep remembers a record that was read, unless something was written since now.
func (r *recall) keep(e core.EnvironmentRecord, now uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writes != now {
		return
	}
	if r.records == nil || len(r.records) >= mostRecalled {
		r.records = map[string]core.EnvironmentRecord{}
	}
	e.Labels = maps.Clone(e.Labels)
	r.records[e.ID] = e
}

// forget is called after each write, before anybody is told of it.
func (r *recall) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	clear(r.records)
}
