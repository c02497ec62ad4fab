package supervisor

import (
	"sync"
	"time"
)

// restTime is how long after a spare was taken the next one is made: the box
// that it became is being used, and the cores are its.
const restTime = 10 * time.Millisecond

// spare keeps one init with namespaces ready, so that a new box need not wait
// for the kernel to make them, nor for the init's runtime to start. It costs
// about a megabyte. It is nobody's until its uid is mapped.
type spare struct {
	make func() (*infant, error)

	mu     sync.Mutex
	ready  *infant
	wanted bool // one is to be made, or is being made
	closed bool
	making sync.WaitGroup
}

// take gives the spare, or makes another where there is none, and sees to the
// next one.
func (s *spare) take() (*infant, error) {
	s.mu.Lock()
	ready := s.ready
	s.ready = nil
	if !s.wanted && !s.closed {
		s.wanted = true
		s.making.Go(s.refill)
	}
	s.mu.Unlock()
	if ready != nil {
		return ready, nil
	}
	return s.make()
}

// refill makes the next spare. Where that fails the next box tells why.
func (s *spare) refill() {
	time.Sleep(restTime)
	next, err := s.make()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = false
	switch {
	case err != nil:
	case s.closed:
		next.discard()
	default:
		s.ready = next
	}
}

func (s *spare) close() {
	s.mu.Lock()
	s.closed = true
	ready := s.ready
	s.ready = nil
	s.mu.Unlock()
	if ready != nil {
		ready.discard()
	}
	s.making.Wait()
}
