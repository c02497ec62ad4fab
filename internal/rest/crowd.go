package rest

import (
	"sync"

	"envapi/core"
)

const (
	// maxAtOnce is how many requests of one account are answered at one time,
	// streams and those who wait among them. Each holds a connection, and may hold
	// a mebibyte of input that no program reads yet.
	maxAtOnce = 2000
	// crowdedPause is after which time one that was refused may be tried again.
	crowdedPause int64 = 1000
)

// crowd counts the requests of each account. The zero value is empty.
type crowd struct {
	mu   sync.Mutex
	some map[string]int
}

// enter counts a request, unless there are most of its account. Who enters must
// leave.
func (c *crowd) enter(account string, most int) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.some[account] >= most {
		return nil, core.Errorf(core.CodeRateLimited, "cannot answer more than %d requests of account %q at one time: end some of the streams and waits, and try again", most, account).
			With("retry_after_ms", crowdedPause)
	}
	if c.some == nil {
		c.some = map[string]int{}
	}
	c.some[account]++
	return func() { c.leave(account) }, nil
}

func (c *crowd) leave(account string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.some[account]--; c.some[account] == 0 {
		delete(c.some, account)
	}
}
