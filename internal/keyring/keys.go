package keyring

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// timing says when keys are fetched; tests shorten it.
type timing struct {
	fetch    time.Duration // how long one fetch may take
	refresh  time.Duration // between fetches, after one that succeeded
	unknown  time.Duration // at least, between fetches for keys that are not known
	retryMin time.Duration // after a fetch that failed, doubled at each
	retryMax time.Duration
}

// usual is the timing of the service. A key that keyring has withdrawn is
// trusted for refresh at most; callers with made-up key ids cause one fetch per
// unknown at most, and wait for it no longer than fetch.
var usual = timing{
	fetch:    5 * time.Second,
	refresh:  5 * time.Minute,
	unknown:  10 * time.Second,
	retryMin: time.Second,
	retryMax: 30 * time.Second,
}

// retryAfter is what callers are told while no token can be verified.
const retryAfter = 2 * time.Second

// keySource holds keyring's keys and keeps them fresh.
//
// One goroutine fetches again and again; requests read a snapshot and never
// wait, except for the fetch that an unknown key id may cause.
type keySource struct {
	url    string
	client *http.Client
	stale  time.Duration
	timing timing
	log    *slog.Logger
	now    func() time.Time

	current atomic.Pointer[snapshot]
	fetched chan struct{} // closed after the first fetch that succeeded

	mu      sync.Mutex
	flight  chan struct{} // closed at the end of the fetch under way; nil without
	unknown *rate.Limiter

	ctx     context.Context // ends at close
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// snapshot is what is known of the keys. It is never changed.
type snapshot struct {
	keys      map[string]publicKey // by key id; nil before the first fetch that succeeded
	fetchedAt time.Time            // when keyring was last reached
	since     time.Time            // since when there have been usable keys, or none
	failures  int                  // fetches that have failed since
	lastError string               // public; "" where failures is 0
}

func startKeySource(c Config, t timing) *keySource {
	s := &keySource{
		url: c.JWKSURL, client: newClient(), stale: c.Stale, timing: t, log: c.Log, now: c.Now,
		fetched: make(chan struct{}),
		unknown: rate.NewLimiter(rate.Every(t.unknown), 1),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.current.Store(&snapshot{since: s.now()})
	s.running.Go(s.keepFresh)
	return s
}

func (s *keySource) close() {
	s.mu.Lock() // so that join starts nothing any more
	s.cancel()
	s.mu.Unlock()
	s.running.Wait()
	s.client.CloseIdleConnections()
}

// keepFresh fetches until the source is closed, from when on there is nothing
// to join.
func (s *keySource) keepFresh() {
	for s.ctx.Err() == nil {
		if end := s.join(func() bool { return true }); end != nil {
			<-end
		}
		select {
		case <-time.After(s.pause()):
		case <-s.ctx.Done():
		}
	}
}

// pause is how long to wait before the next fetch.
func (s *keySource) pause() time.Duration {
	failures := s.current.Load().failures
	if failures == 0 {
		return s.timing.refresh
	}
	return min(s.timing.retryMin<<min(failures-1, 16), s.timing.retryMax)
}

// join gives the end of the fetch that is under way, or of a new one where
// there is none and one is allowed. Otherwise it gives nil.
func (s *keySource) join(allowed func() bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flight == nil && s.ctx.Err() == nil && allowed() {
		s.flight = make(chan struct{})
		s.running.Go(s.fly)
	}
	return s.flight
}

// fly performs a fetch and ends its flight.
func (s *keySource) fly() {
	s.fetchOnce()
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.flight)
	s.flight = nil
}

// find gives the key of an id. Where it is not known it may be new: then the
// keys are fetched first, if they were not just now.
func (s *keySource) find(ctx context.Context, kid string) (publicKey, bool) {
	if key, ok := s.current.Load().keys[kid]; ok {
		return key, true
	}
	end := s.join(func() bool { return s.unknown.AllowN(s.now(), 1) })
	if end == nil {
		return publicKey{}, false
	}
	select {
	case <-end:
	case <-ctx.Done():
	}
	key, ok := s.current.Load().keys[kid]
	return key, ok
}

// fetchOnce fetches the keys and puts them in the place of the old ones. Where
// that fails the old ones stay.
func (s *keySource) fetchOnce() {
	ctx, cancel := context.WithTimeout(s.ctx, s.timing.fetch)
	defer cancel()
	keys, err := fetchKeys(ctx, s.client, s.url)
	old, now := s.current.Load(), s.now()
	next := *old
	if err != nil {
		next.failures++
		next.lastError = publicWords(err)
		s.current.Store(&next)
		if s.ctx.Err() == nil {
			s.log.Warn("cannot fetch the keys of keyring; the old ones stay", "error", err, "failures", next.failures)
		}
		return
	}
	if !s.usableAt(old, now) {
		next.since = now
		s.log.Info("tokens can be verified", "keys", len(keys))
	}
	next.keys, next.fetchedAt, next.failures, next.lastError = keys, now, 0, ""
	s.current.Store(&next)
	if old.keys == nil {
		close(s.fetched)
	}
}

// usable says whether there are keys that are not too old.
func (s *keySource) usable() bool { return s.usableAt(s.current.Load(), s.now()) }

func (s *keySource) usableAt(c *snapshot, now time.Time) bool {
	return c.keys != nil && now.Sub(c.fetchedAt) <= s.stale
}

func (s *keySource) status() Status {
	c, now := s.current.Load(), s.now()
	st := Status{Verifies: s.usableAt(c, now), Since: c.since, LastError: c.lastError}
	if c.keys == nil {
		return st
	}
	st.Fetched, st.KeysAge = true, now.Sub(c.fetchedAt)
	if !st.Verifies {
		st.Since = c.fetchedAt.Add(s.stale)
	}
	return st
}
