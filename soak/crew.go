package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// crew are the clients of one run.
type crew struct {
	clients []*client
	victims []string // environments of clients that use the service as it is meant
	mu      sync.Mutex
}

// client is one account, with an environment of its own in which it plays.
type client struct {
	door
	crew    *crew
	service *service
	tally   *tally
	rand    *rand.Rand
	account string
	hostile bool
	plays   []play
	home    string // its environment; "" before there is one
	turns   int
}

// play is a short sequence of calls whose answers are checked. It leaves nothing but
// files behind.
type play struct {
	name string
	do   func(ctx context.Context, c *client) error
}

// between is the least time between two calls of a client: as fast as an account may
// ask for ever.
const between = 12 * time.Millisecond

// hire makes the clients, each with a token and an environment.
func hire(ctx context.Context, s *service, t *tally, o options) (*crew, error) {
	contract, err := readContract(ctx, s.url)
	if err != nil {
		return nil, err
	}
	all := &crew{}
	for i := range o.clients + o.hostile {
		c := &client{
			door: door{
				url: s.url, contract: contract,
				http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2}},
			},
			crew: all, service: s, tally: t, account: fmt.Sprintf("client-%d", i),
			rand: newRand(o.seed, uint64(i)),
		}
		c.plays = plays()
		if c.hostile = i >= o.clients; c.hostile {
			c.account, c.plays = fmt.Sprintf("hostile-%d", i-o.clients), attacks()
		}
		if c.token, err = s.token(c.account); err != nil {
			return nil, err
		}
		if err := c.greet(ctx); err != nil {
			return nil, fmt.Errorf("cannot greet /mcp: %w", err)
		}
		all.clients = append(all.clients, c)
	}
	return all, nil
}

// operations are those that clients who use the service as it is meant must have driven,
// with their doors.
func (all *crew) operations() []string {
	var names []string
	for name := range all.clients[0].contract {
		names = append(names, "rest "+name)
	}
	for name := range all.clients[0].tools {
		names = append(names, "mcp "+name)
	}
	slices.Sort(names)
	return names
}

// work lets every client play until a time, or all of its plays so many times where that
// is zero, and then delete what it has. Each begins with another play. In rounds the
// hostile ones share their attacks out, since many of those only take time.
func (all *crew) work(ctx context.Context, until time.Time, rounds int) {
	var working sync.WaitGroup
	for i, c := range all.clients {
		working.Go(func() {
			order := c.order(i, until.IsZero() && c.hostile)
			for turn := 0; ctx.Err() == nil; turn++ {
				if until.IsZero() && turn >= rounds*len(order) || !until.IsZero() && time.Now().After(until) {
					break
				}
				if k := turn % len(order); k == 0 && turn > 0 {
					c.rand.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
				}
				c.turn(ctx, c.plays[order[turn%len(order)]])
			}
			c.leave(ctx)
		})
	}
	working.Wait()
}

// order is that of the plays, or of the client's share of them.
func (c *client) order(first int, share bool) []int {
	sharers := 0
	for _, other := range c.crew.clients {
		if other.hostile {
			sharers++
		}
	}
	var order []int
	for i := range c.plays {
		k := (first*3 + i) % len(c.plays)
		if !share || k%sharers == first%sharers {
			order = append(order, k)
		}
	}
	return order
}

// turn is one play.
func (c *client) turn(ctx context.Context, p play) {
	c.turns++
	if err := c.settle(ctx); err != nil {
		c.wrong(ctx, fmt.Errorf("%s: cannot have an environment: %w", c.account, err))
		return
	}
	err := p.do(ctx, c)
	if err != nil {
		c.wrong(ctx, fmt.Errorf("%s, %s: %w", c.account, p.name, err))
	}
	if c.hostile {
		c.leave(ctx) // the next begins with an environment that answers
	}
}

// wrong notes an error, unless the whole run was ended.
func (c *client) wrong(ctx context.Context, err error) {
	if ctx.Err() == nil {
		c.tally.blame(err)
	}
}

// settle sees to it that the client has an environment.
func (c *client) settle(ctx context.Context) error {
	if c.home != "" {
		return nil
	}
	var made object
	err := c.patiently(ctx, func() (err error) {
		made, err = c.call(ctx, "create_environment", object{"name": c.account})
		return err
	})
	if err != nil {
		return err
	}
	c.home = text(made, "id")
	if !c.hostile {
		c.crew.mu.Lock()
		c.crew.victims = append(c.crew.victims, c.home)
		c.crew.mu.Unlock()
	}
	return nil
}

// leave deletes every environment of the client's account.
func (c *client) leave(ctx context.Context) {
	c.home = ""
	for {
		var page object
		err := c.patiently(ctx, func() (err error) {
			page, err = c.call(ctx, "list_environments", object{})
			return err
		})
		if err != nil {
			c.wrong(ctx, fmt.Errorf("%s leaves: %w", c.account, err))
			return
		}
		left := items(page)
		if len(left) == 0 {
			break
		}
		for _, e := range left {
			err := c.patiently(ctx, func() error {
				_, err := c.call(ctx, "delete_environment", object{"environment_id": e["id"]})
				return err
			})
			if err != nil && !isRefused(err, "not_found") {
				c.wrong(ctx, fmt.Errorf("%s leaves: %w", c.account, err))
				return
			}
		}
	}
	c.http.CloseIdleConnections()
}

// patiently tries again where a hostile client of the same account has left something
// that still passes: it is told environment_busy, or to come more slowly.
func (c *client) patiently(ctx context.Context, do func() error) error {
	for deadline := time.Now().Add(callWithin); ; {
		err := do()
		passing := isRefused(err, "environment_busy") || isRefused(err, "rate_limited") || isRefused(err, "unavailable")
		if !c.hostile || !passing || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (all *crew) dismiss() {
	for _, c := range all.clients {
		c.http.CloseIdleConnections()
	}
}

// call makes one call whose answer is JSON, over one of the two doors.
func (c *client) call(ctx context.Context, operation string, input object) (object, error) {
	k, do := kind{"rest", operation}, c.rest
	if c.tools[operation] && c.overMCP(operation) {
		k, do = kind{"mcp", operation}, c.tool
	}
	var answer object
	err := c.noted(ctx, k, func(ctx context.Context) (err error) {
		answer, err = do(ctx, operation, input)
		return err
	})
	if err != nil {
		return answer, fmt.Errorf("%s %s: %w", k.door, operation, err)
	}
	return answer, nil
}

// overMCP chooses a door: by chance, once an operation was driven over both.
func (c *client) overMCP(operation string) bool {
	switch {
	case !c.tally.succeeded(kind{"rest", operation}):
		return false
	case !c.tally.succeeded(kind{"mcp", operation}):
		return true
	}
	return c.rand.IntN(2) == 0
}

// noted does something that is one call of a kind, not too soon after the one before,
// and notes how it went.
func (c *client) noted(ctx context.Context, k kind, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	begun := time.Now()
	err := do(ctx)
	took := time.Since(begun)
	if c.hostile {
		c.tally.endured(k.operation, err)
	} else {
		c.tally.note(k, took, err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(between - took):
	}
	return err
}

// here is input for the client's environment.
func (c *client) here(input object) object {
	all := object{"environment_id": c.home}
	for name, value := range input {
		all[name] = value
	}
	return all
}

func isRefused(err error, code string) bool {
	var r *refusal
	return errors.As(err, &r) && r.code == code
}

func newRand(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // choices, no secrets
}
