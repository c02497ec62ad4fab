// Package turns has the callers of an account wait for each other where what they ask
// for keeps a processor or a thread busy for long, so that one account keeps no other
// one waiting, however much it asks for at one time.
package turns

import (
	"context"
	"errors"
	"sync"

	"envapi/core"
)

// Turns lets each account have so many of something under way at one time. What has no
// caller is an account of its own.
type Turns struct {
	what string
	most int

	mu sync.Mutex
	of map[string]*line
}

// line is that of an account; wanted counts who has a turn or waits for one.
type line struct {
	taken  chan struct{}
	wanted int
}

// New makes Turns. What is said to who waited in vain: "searches", "copies".
func New(what string, most int) *Turns {
	return &Turns{what: what, most: most, of: map[string]*line{}}
}

// Take waits for a turn of the account that ctx is of, until ctx ends: past its
// deadline it fails with `rate_limited`. Who takes one must call leave.
func (t *Turns) Take(ctx context.Context) (leave func(), err error) {
	caller, _ := core.CallerFrom(ctx)
	l := t.want(caller.Account)
	select {
	case l.taken <- struct{}{}:
		return func() {
			<-l.taken
			t.forget(caller.Account, l)
		}, nil
	case <-ctx.Done():
		t.forget(caller.Account, l)
		return nil, t.late(ctx.Err())
	}
}

func (t *Turns) late(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return core.Errorf(core.CodeRateLimited, "it was not done in time, since %d other %s of this account go first: wait for those, or end them", t.most, t.what).
		With("retry_after_ms", 1000).Because(err)
}

func (t *Turns) want(account string) *line {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.of[account]
	if l == nil {
		l = &line{taken: make(chan struct{}, t.most)}
		t.of[account] = l
	}
	l.wanted++
	return l
}

// forget lets go of a line that nobody wants any more.
func (t *Turns) forget(account string, l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.wanted--; l.wanted == 0 {
		delete(t.of, account)
	}
}
