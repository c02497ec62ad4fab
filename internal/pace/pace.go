// Package pace bounds how often each account asks: a bucket of requests for each,
// which fills at a steady rate. It bounds nothing else; how much is under way at
// one time is counted where it is done.
package pace

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"envapi/core"
)

// burst is how many seconds' worth of requests may come at once. An assistant that
// starts, or a test suite, asks a lot for a moment.
const burst = 20

// Pace holds the buckets. Its methods may be called from many goroutines; a nil
// *Pace bounds nothing.
type Pace struct {
	perSecond int
	now       func() time.Time

	mu         sync.Mutex
	young, old map[string]*rate.Limiter // by account
	since      time.Time                // when young was begun
}

// New gives each account so many requests in a second. With 0 it gives nil. A now
// of nil is time.Now.
func New(perSecond int, now func() time.Time) *Pace {
	if perSecond == 0 {
		return nil
	}
	if now == nil {
		now = time.Now
	}
	return &Pace{perSecond: perSecond, now: now, young: map[string]*rate.Limiter{}, since: now()}
}

// Take takes a request out of the bucket of an account. It fails with
// `rate_limited` where there is none; then nothing was taken.
func (p *Pace) Take(account string) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	bucket := p.bucket(account, now)
	if bucket.AllowN(now, 1) {
		return nil
	}
	missing := (1 - bucket.TokensAt(now)) / float64(p.perSecond)
	wait := max(1, int64(math.Ceil(missing*1000)))
	return core.Errorf(core.CodeRateLimited, "cannot answer so many requests of account %q: it may have %d in a second, and %d at once after a pause; wait, and ask for more with each request",
		account, p.perSecond, p.perSecond*burst).With("retry_after_ms", wait)
}

// bucket gives the bucket of an account. Those that nobody took from for as long as
// an empty one takes to fill are full, as new ones are, and forgotten.
func (p *Pace) bucket(account string, now time.Time) *rate.Limiter {
	if now.Sub(p.since) >= burst*time.Second {
		p.young, p.old, p.since = map[string]*rate.Limiter{}, p.young, now
	}
	b := p.young[account]
	if b == nil {
		if b = p.old[account]; b == nil {
			b = rate.NewLimiter(rate.Limit(p.perSecond), p.perSecond*burst)
		}
		p.young[account] = b
	}
	return b
}
