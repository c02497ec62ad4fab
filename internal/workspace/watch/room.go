package watch

import (
	"os"
	"strconv"
	"strings"
	"sync"

	"envapi/core"
)

const (
	// limitFile says how many directories and files the kernel lets a user watch: the
	// service, all it runs, and whoever else on the host is root.
	limitFile = "/proc/sys/fs/inotify/max_user_watches"
	// smallest is that of the smallest hosts.
	smallest = 8192
)

// room is how many directories all subscriptions together may watch. An account gets at
// most half of what others have left, so that it leaves something to everybody.
type room struct {
	most int

	mu    sync.Mutex
	total int
	of    map[string]int // by account
}

// newRoom takes half of what the kernel gives.
func newRoom() *room {
	limit := smallest
	if text, err := os.ReadFile(limitFile); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			limit = n
		}
	}
	return &room{most: limit / 2, of: map[string]int{}}
}

// share is what a subscription has of it. Its methods are called by one goroutine at a
// time.
type share struct {
	room    *room
	account string
	n       int
}

// reach has the share be n at least.
func (s *share) reach(n int) error {
	more := n - s.n
	if more <= 0 {
		return nil
	}
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.of[s.account]
	if left := r.most - (r.total - own); own+more > left/2 {
		return core.Errorf(core.CodeUnavailable, "cannot watch: this account watches %d directories, and the host's kernel has not many more for it; end a watch, or watch a directory with less below it", own).
			With("retry_after_ms", retryAfter)
	}
	r.total += more
	r.of[s.account] += more
	s.n = n
	return nil
}

// settle has it be n, where it was more.
func (s *share) settle(n int) {
	if n >= s.n {
		return
	}
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total -= s.n - n
	if r.of[s.account] -= s.n - n; r.of[s.account] == 0 {
		delete(r.of, s.account)
	}
	s.n = n
}
