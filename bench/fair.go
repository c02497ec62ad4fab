package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"envapi/core"
	"envapi/internal/devkeyring"
)

// fairOptions say how much to measure of what one account does to another.
type fairOptions struct {
	turns   int           // each is some rounds of every call alone and under each load
	rounds  int           // of every call in a turn and under one load
	between time.Duration // two calls: one account may make only so many in a second
	among   int           // files that are searched
}

// neighbour is what another account does meanwhile.
type neighbour struct {
	name  string
	begin func(*load, context.Context) error
	most  float64 // times as long as alone a call may take
}

// neighbours are what an account can do at most, and the least that takes all
// processors: what that takes of a call is the machine's and no limit's to give.
var neighbours = []neighbour{
	{"alone", nil, 1},
	{"beside a busy loop for each core", (*load).spinning, 1.5},
	// More than is wanted: see docs/adr/fairness.md for what is in the way.
	{"beside one at all its limits", (*load).everything, 15},
}

// fairCalls are what an account does meanwhile. The last one is no call: it is
// what any program of this machine meets.
var fairCalls = []string{"exec of argv [true]", "write_file of 1 KB", "list_files", "get_environment", bareTrue}

// fairName is the name of a call beside a neighbour.
func fairName(call string, n neighbour) string { return call + ", " + n.name }

// fairBounds are those of an account beside another.
func fairBounds() []bound {
	var all []bound
	for _, call := range fairCalls {
		for _, n := range neighbours[1:] {
			most := n.most
			if call == bareTrue {
				most = 0
			}
			all = append(all, bound{fairName(call, n), fairName(call, neighbours[0]), most})
		}
	}
	return all
}

// takeFair measures the calls of an account of a service of its own, alone and
// beside others, turn by turn, so that what the machine does besides hits all.
func (r *report) takeFair(ctx context.Context, o options, folder string) error {
	s, as, err := startAccounts(ctx, o.program, filepath.Join(folder, "fair"))
	if err != nil {
		return err
	}
	defer s.stop()
	line, err := callsOf(ctx, as("bob"))
	if err != nil {
		return err
	}
	l, err := newLoad(ctx, as("alice"), o.fair.among)
	if err != nil {
		return err
	}
	times := map[string][]time.Duration{}
	for range o.fair.turns {
		for _, n := range neighbours {
			if err := l.during(ctx, n.begin, func() error { return o.fair.turn(ctx, line, n, times) }); err != nil {
				return fmt.Errorf("cannot measure an account %s: %w", n.name, err)
			}
		}
	}
	for _, call := range fairCalls {
		for _, n := range neighbours {
			taken := times[fairName(call, n)]
			slices.Sort(taken)
			r.fair = append(r.fair, sample{fairName(call, n), taken})
		}
	}
	r.refused = l.refused
	return nil
}

// turn does every call some times beside a neighbour.
func (o fairOptions) turn(ctx context.Context, line []contender, n neighbour, times map[string][]time.Duration) error {
	for range o.rounds {
		for _, c := range line {
			took, err := c.run(ctx)
			if err != nil {
				return err
			}
			name := fairName(c.name, n)
			times[name] = append(times[name], took)
			if err := pause(ctx, o.between); err != nil {
				return err
			}
		}
	}
	return nil
}

// pause lets time go by, or says that there is none left.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// callsOf prepares an account and gives its calls.
func callsOf(ctx context.Context, s *service) ([]contender, error) {
	id, err := s.create(ctx)
	if err != nil {
		return nil, err
	}
	f, content := files{s, id}, string(make([]byte, 1<<10))
	for i := range 20 {
		if err := f.put(ctx, fmt.Sprintf("f%d.txt", i), 1<<10); err != nil {
			return nil, err
		}
	}
	do := func(method, path string, body any) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) {
			return timed(func() error { return s.call(ctx, method, "/v1/environments/"+id+path, body, nil) })
		}
	}
	return []contender{
		{fairCalls[0], func(ctx context.Context) (time.Duration, error) {
			return timed(func() error { return s.execArgv(ctx, id) })
		}},
		{fairCalls[1], do(http.MethodPost, "/files/write", map[string]any{"path": "written.txt", "content": content})},
		{fairCalls[2], do(http.MethodGet, "/files?path=.", nil)},
		{fairCalls[3], do(http.MethodGet, "", nil)},
		{fairCalls[4], bare("true")},
	}, nil
}

// fairRate is what each account may ask in a second: as much as it may unless somebody
// says otherwise.
const fairRate = "ENVAPI_MAX_REQUESTS_PER_SECOND=100"

// startAccounts starts a service, and gives it as each account has it.
func startAccounts(ctx context.Context, program, data string) (*service, func(account string) *service, error) {
	l, err := devkeyring.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	key, err := devkeyring.NewKey()
	if err != nil {
		return nil, nil, err
	}
	url := "http://" + l.Addr().String()
	keyring, err := devkeyring.New(url, "envapi", key)
	if err != nil {
		return nil, nil, err
	}
	go func() { _ = keyring.Serve(ctx, l) }() // it ends with the run
	s, err := startService(ctx, program, data, keyringSetting+url,
		"ENVAPI_MAX_RUNNING_COMMANDS="+fmt.Sprint(loadCommands), fairRate)
	if err != nil {
		return nil, nil, err
	}
	return s, func(account string) *service {
		t, err := keyring.Mint(devkeyring.Grant{
			Owner: core.Owner{Account: account, Profile: "default"}, Scopes: core.AllScopes, Lifetime: time.Hour,
		})
		if err != nil {
			return s // of which no call succeeds
		}
		return &service{url: s.url, token: t.Raw}
	}, nil
}

// printFair writes what one account does to another.
func (r *report) printFair(w io.Writer) {
	if len(r.fair) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%-62s %9s %9s %6s %6s\n", "calls of one account", "median", "p95", "ratio", "p95's")
	for _, b := range fairBounds() {
		of, to := r.sample(b.of), r.sample(b.to)
		if of == nil || to == nil {
			continue
		}
		fmt.Fprintf(w, "%-62s %9s %9s\n", b.to, ms(to.quantile(0.5)), ms(to.quantile(0.95)))
		fmt.Fprintf(w, "%-62s %9s %9s %6.2f %6.2f\n", b.of, ms(of.quantile(0.5)), ms(of.quantile(0.95)),
			float64(of.quantile(0.5))/float64(to.quantile(0.5)), float64(of.quantile(0.95))/float64(to.quantile(0.95)))
	}
	fmt.Fprintf(w, "%-62s %d\n", "refusals that the other got meanwhile", r.refused)
}
