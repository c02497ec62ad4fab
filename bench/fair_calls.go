package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// callsVariable makes this program one that makes the calls of the loud account, of
	// which the quiet one's must not have to wait for its turn: it says which, in JSON.
	callsVariable = "ENVAPI_BENCH_CALLS"
	// loadSearches is how many searches are made at one time, loadUploads how many
	// uploads of loadBytes, and loadWaits how many calls wait.
	loadSearches, loadUploads, loadWaits = 32, 2, 200
	loadBytes                            = 8 << 20
	// floods is how many requests are made in a second besides, of which most are more
	// than an account may, by so many at one time.
	floods, flooders = 600, 16
	// mostAtOnce is more than an account may ask at once after a pause.
	mostAtOnce = 4000
	// patienceOfRefused is how long a search or an upload waits that was refused.
	patienceOfRefused = 100 * time.Millisecond
)

// calls are what another process calls.
type calls struct {
	URL, Token, Environment string
	Running                 []string // commands to wait for

	refused atomic.Int64
}

// call starts the process that makes the calls of the account, and returns when that
// has begun.
func (l *load) call(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	what, err := json.Marshal(&calls{URL: l.s.url, Token: l.s.token, Environment: l.made[0], Running: l.running})
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, program)
	c.Env, c.Stderr = append(os.Environ(), callsVariable+"="+string(what)), os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	said := bufio.NewReader(out)
	if _, err := said.ReadString('\n'); err != nil {
		return errors.Join(fmt.Errorf("cannot make the calls of another account: %w", err), c.Wait())
	}
	l.callers = func() error {
		_ = in.Close() // which ends them
		line, err := said.ReadString('\n')
		n, err2 := strconv.Atoi(strings.TrimSpace(line))
		l.refused += n
		return errors.Join(err, err2, c.Wait())
	}
	return nil
}

// makeCalls makes calls until the standard input ends, says then how many were refused,
// and ends the program.
func makeCalls(what string) {
	var c calls
	if err := json.Unmarshal([]byte(what), &c); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	c.drain(ctx)
	c.begin(ctx, &all)
	fmt.Println("begun")
	_, _ = io.Copy(io.Discard, os.Stdin) // until its end
	stop()
	all.Wait()
	fmt.Println(c.refused.Load())
	os.Exit(0)
}

// drain makes as many requests as an account may make at once after a pause, or mostAtOnce.
func (c *calls) drain(ctx context.Context) {
	var all sync.WaitGroup
	for range flooders {
		all.Go(func() {
			for range mostAtOnce / flooders {
				if c.status(ctx) != nil || c.refused.Load() > 0 {
					c.refused.Add(1)
					break
				}
			}
		})
	}
	all.Wait()
}

func (c *calls) status(ctx context.Context) error {
	return (&service{url: c.URL, token: c.Token}).call(ctx, http.MethodGet, "/v1/status", nil, nil)
}

// begin begins all that an account may call at one time.
func (c *calls) begin(ctx context.Context, all *sync.WaitGroup) {
	f := files{&service{url: c.URL, token: c.Token}, c.Environment}
	call := func(method, path string, body any) func() error {
		return func() error { return f.s.call(ctx, method, path, body, nil) }
	}
	again := func(n int, between time.Duration, do func(i int) error) {
		for i := range n {
			all.Go(func() { c.again(ctx, between, func() error { return do(i) }) })
		}
	}
	search := call(http.MethodPost, "/v1/environments/"+f.id+"/files/search", map[string]any{"pattern": "t[a-z]+ that .*7$", "limit": 10})
	again(loadSearches, patienceOfRefused, func(int) error { return search() })
	again(loadUploads, patienceOfRefused, func(i int) error { return f.put(ctx, fmt.Sprint("upload", i), loadBytes) })
	again(loadWaits, patienceOfRefused, func(i int) error {
		return call(http.MethodGet, "/v1/commands/"+c.Running[i%len(c.Running)]+"?wait_ms=45000", nil)()
	})
	again(flooders, flooders*time.Second/floods, func(int) error { return c.status(ctx) })
}

// again calls again and again until ctx ends, with a time between two calls.
func (c *calls) again(ctx context.Context, between time.Duration, call func() error) {
	for ctx.Err() == nil {
		if err := call(); err != nil && ctx.Err() == nil {
			c.refused.Add(1)
		}
		_ = pause(ctx, between) // the loop sees that ctx has ended
	}
}
