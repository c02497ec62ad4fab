package files

import (
	"time"

	"golang.org/x/sys/unix"
)

// SetPoint has point told where changes come to.
func (s *Store) SetPoint(point func(string)) { s.point = point }

// SetRenameat2 puts something in the place of the system's call, and gives what puts
// that back.
func SetRenameat2(f func(from int, name string, to int, target string, flags uint) error) (restore func()) {
	renameat2 = f
	return func() { renameat2 = unix.Renameat2 }
}

// SetMostJournal bounds journals by something else, and gives what puts that back.
func SetMostJournal(n int) (restore func()) {
	before := mostJournal
	mostJournal = n
	return func() { mostJournal = before }
}

// Tags counts the tags that are kept, and MostTags bounds them.
func (s *Store) Tags() int { return s.tags.order.Len() }

// KeepTag keeps a tag of a file that rested long before.
func (s *Store) KeepTag(st *unix.Stat_t, tag string) {
	s.tags.put(st, tag, time.Now())
}

const (
	MostTags = mostTags
	Restful  = restful
)

// Waiting counts who has a lock or waits for one.
func (s *Store) Waiting() (n int) {
	s.locks.mu.Lock()
	defer s.locks.mu.Unlock()
	for _, l := range s.locks.held {
		n += l.wanted
	}
	return n
}

// Locks counts the locks that somebody has or waits for.
func (s *Store) Locks() int {
	s.locks.mu.Lock()
	defer s.locks.mu.Unlock()
	return len(s.locks.held)
}
