package settings

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"envapi/core"
)

const (
	// fresh is how long what was said is not asked for again.
	fresh = 5 * time.Minute
	// askBound is how long an answer may take, with all that belongs to it.
	askBound = 5 * time.Second
	// pause is how long settings-api is left alone after it did not answer,
	// about anybody: a reaper that asks about thousands must not wait for each.
	// It is also the first pause after a question about one account failed.
	pause = 30 * time.Second
	// storeBound is how long the store gets to keep what was said.
	storeBound = 5 * time.Second
)

// Store keeps what was last known of accounts; core.Store is one.
type Store interface {
	KeepSettings(ctx context.Context, account, text string) error
	Settings(ctx context.Context, account string) (string, error)
}

// Config is what a Client is made of.
type Config struct {
	URL       string // of settings-api; see keyring.CheckURL
	TokenFile string // with the token to ask with, read each time; "" asks without one
	Store     Store
	Log       *slog.Logger     // nil discards
	Now       func() time.Time // the clock; nil is time.Now
}

// Client asks settings-api. Its methods may be called from many goroutines.
type Client struct {
	Config
	bound time.Duration // askBound; tests shorten it
	http  *http.Client

	closing context.Context
	close   context.CancelFunc
	flights sync.WaitGroup

	mu     sync.Mutex
	closed bool
	people people
	outage outage
}

// outage is the time in which settings-api does not answer. The zero value is
// that it does.
type outage struct {
	since time.Time // zero where it answers
	until time.Time // when it may be tried again
	tried bool      // somebody is trying
	said  complaint
}

// New makes a Client. It asks nothing yet. Close ends it.
func New(c Config) (*Client, error) {
	if c.URL == "" || c.Store == nil {
		return nil, errors.New("cannot ask settings-api without its address and a store")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Client{Config: c, bound: askBound, http: newHTTPClient()}
	s.closing, s.close = context.WithCancel(context.Background())
	return s, nil
}

// Close ends the questions that are under way. After it, what is known is
// answered and nothing is asked.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.close()
	c.flights.Wait()
	c.http.CloseIdleConnections()
	return nil
}

// Of gives what an owner asked for, and asks settings-api where that is not
// known or older than five minutes. It takes as long as an answer may take and as
// the store may take to keep it, five seconds each, and less where ctx ends before.
func (c *Client) Of(ctx context.Context, o core.Owner) core.IdleTimes {
	c.recall(ctx, o.Account)
	if flight := c.ask(o.Account); flight != nil {
		select {
		case <-flight:
		case <-ctx.Done():
		}
	}
	return c.known(o)
}

// Known gives what is known without asking settings-api.
func (c *Client) Known(ctx context.Context, o core.Owner) core.IdleTimes {
	c.recall(ctx, o.Account)
	return c.known(o)
}

func (c *Client) known(o core.Owner) core.IdleTimes {
	if _, err := address(c.URL, o.Account); err != nil {
		return core.IdleTimes{} // nobody can have asked for anything under this name
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.people.get(o.Account).wishes.of(o.Profile)
}

// recall sees to it that what the store has of an account is in memory.
func (c *Client) recall(ctx context.Context, account string) {
	c.mu.Lock()
	recalled := c.people.get(account).recalled
	c.mu.Unlock()
	if recalled {
		return
	}
	text, err := c.Store.Settings(ctx, account)
	if err != nil { // the next call tries again
		c.Log.DebugContext(ctx, "cannot recall what settings-api said", "account", account, "error", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.people.get(account); !p.recalled {
		p.recall(text)
	}
}

// ask gives what is closed when the question about an account is answered; nil
// where there is nothing to wait for.
func (c *Client) ask(account string) <-chan struct{} {
	url, err := address(c.URL, account)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p, now := c.people.get(account), c.Now()
	if p.flight != nil {
		return p.flight
	}
	if c.closed || p.isFresh(now) || now.Before(p.wait) || !c.outage.mayTry(now) {
		return nil
	}
	flight, known := make(chan struct{}), p.basis()
	p.flight = flight
	c.flights.Go(func() {
		ctx, cancel := context.WithTimeout(c.closing, c.bound)
		defer cancel()
		said, err := c.fetch(ctx, url, known)
		c.take(account, p, said, err)
	})
	return flight
}

// isFresh says whether an account need not be asked about. A clock that was put
// back makes nothing fresh.
func (p *person) isFresh(now time.Time) bool {
	age := now.Sub(p.checked)
	return !p.checked.IsZero() && age >= 0 && age < fresh
}

// mayTry says whether settings-api may be asked, which in an outage one may at a
// time, after each pause.
func (o *outage) mayTry(now time.Time) bool {
	if o.since.IsZero() {
		return true
	}
	if o.tried || now.Before(o.until) {
		return false
	}
	o.tried = true
	return true
}

// take takes an answer, or why there is none, keeps it, and then lets those who wait
// go on: what somebody was told is not forgotten by a restart.
func (c *Client) take(account string, p *person, said answer, err error) {
	text := ""
	c.mu.Lock()
	switch {
	case err == nil:
		text = c.learn(account, p, said)
	case c.closing.Err() == nil: // else it is no outage
		c.missed(account, p, err)
	}
	c.mu.Unlock()
	if text != "" {
		c.keep(account, p, text)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	close(p.flight)
	p.flight = nil
}

// learn notes an answer and gives the text to keep, "" where that is kept.
func (c *Client) learn(account string, p *person, said answer) string {
	now := c.Now()
	c.reached(now)
	if p.unfit {
		c.Log.Info("what settings-api says of an account can be used again", "account", account)
	}
	p.checked, p.failures, p.wait, p.unfit = now, 0, time.Time{}, false
	if !said.same {
		p.recalled, p.wishes, p.tag = true, &said.wishes, said.tag
	}
	text, err := p.text()
	if err != nil || text == p.kept {
		return ""
	}
	return text
}

// missed notes that there was no answer that could be used. Each time it is so
// again about one account, that account has to wait for twice as long, so that
// others get their turn too.
func (c *Client) missed(account string, p *person, err error) {
	now := c.Now()
	p.wait = now.Add(min(pause<<min(p.failures, 10), fresh))
	p.failures++
	var u *unfit
	if errors.As(err, &u) {
		c.reached(now)
		if !p.unfit {
			c.Log.Warn("settings-api says of an account what cannot be used: what is known of it holds", "account", account, "why", u.words)
		}
		p.unfit = true
		return
	}
	if c.outage.said.isNew(err, now) {
		c.Log.Warn("settings-api does not answer: what is known holds, and where nothing is, nothing is ended for being idle but environments with an idle_ms of their own", "error", err)
	}
	if c.outage.since.IsZero() {
		c.outage.since = now
	}
	c.outage.until, c.outage.tried = now.Add(pause), false
}

// reached notes that settings-api answers.
func (c *Client) reached(now time.Time) {
	if after, over := c.outage.said.isOver(now); over {
		c.Log.Info("settings-api answers again", "after_ms", after.Milliseconds())
	}
	c.outage = outage{said: c.outage.said}
}

// keep has the store keep what is known of an account, for outages that a start
// falls into.
func (c *Client) keep(account string, p *person, text string) {
	ctx, cancel := context.WithTimeout(c.closing, storeBound)
	defer cancel()
	if err := c.Store.KeepSettings(ctx, account, text); err != nil {
		c.Log.Warn("cannot keep what settings-api said; a restart forgets it", "account", account, "error", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p.kept = text
}
