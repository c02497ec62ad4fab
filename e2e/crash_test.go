package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// crashes is a service that is killed again and again under a load of witnesses.
type crashes struct {
	service   *service
	witnesses []*witness
	rng       *rand.Rand
	mark      string
	answered  atomic.Int64 // calls of all witnesses
}

// crashSeed is what chance begins with: ENVAPI_CRASH_SEED, or another one each time.
// With the same one the same calls are made, up to how far a kill lets them come.
func crashSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if value := os.Getenv("ENVAPI_CRASH_SEED"); value != "" {
		var err error
		if seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("ENVAPI_CRASH_SEED=%d", seed)
	return seed
}

// crashRounds is how often the service is killed: ENVAPI_CRASH_ROUNDS, or n times.
func crashRounds(t *testing.T, n int) int {
	t.Helper()
	if value := os.Getenv("ENVAPI_CRASH_ROUNDS"); value != "" {
		var err error
		if n, err = strconv.Atoi(value); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// underLoad starts a service with so many witnesses.
func underLoad(t *testing.T, c config, witnesses int) *crashes {
	t.Helper()
	k := startKeyring(t)
	c.keyring, c.env = true, maps.Clone(c.env)
	if c.env == nil {
		c.env = map[string]string{}
	}
	c.env["ENVAPI_KEYRING_URL"], c.env["ENVAPI_LOG_LEVEL"] = k.url, "warn"
	seed := crashSeed(t)
	x := &crashes{service: start(t, c), rng: rand.New(rand.NewPCG(seed, 0)), mark: mark()}
	for i := range witnesses {
		x.witnesses = append(x.witnesses, &witness{
			rest: rest{token: k.mint(t, object{"sub": fmt.Sprint("account", i/2), "profile": fmt.Sprint("profile", i)})},
			rng:  rand.New(rand.NewPCG(seed, uint64(i)+1)), mark: x.mark, answered: &x.answered, overMCP: i%2 == 1,
			envs: map[string]*dwelling{}, commands: map[string]*ran{}, shells: map[string]*opened{},
			answers: map[string]int{}, refusals: map[string]int{},
		})
	}
	x.connect()
	return x
}

// connect has the witnesses use the service that is there now.
func (x *crashes) connect() {
	for _, w := range x.witnesses {
		w.base = x.service.url
		w.door = w.rest
		if w.overMCP {
			w.door = bareMCP{w.rest}
		}
	}
}

// each does something with all witnesses at one time.
func (x *crashes) each(do func(*witness) error) error {
	errs := make([]error, len(x.witnesses))
	var all sync.WaitGroup
	for i, w := range x.witnesses {
		all.Go(func() {
			if err := do(w); err != nil {
				errs[i] = fmt.Errorf("witness %d: %w", i, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// crash kills the service at a random moment of its work.
func (x *crashes) crash(t *testing.T) {
	t.Helper()
	var killed atomic.Bool
	end := x.load(&killed)
	some := x.answered.Load() + x.rng.Int64N(80)
	_ = eventually(func() error { // as far on a slow machine as on a fast one
		if x.answered.Load() < some {
			return errors.New("it goes on")
		}
		return nil
	})
	time.Sleep(time.Duration(x.rng.Int64N(int64(20 * time.Millisecond)))) // anywhere in what is under way
	killed.Store(true)
	x.service.kill()
	if err := end(); err != nil {
		t.Fatal(err)
	}
	noProcess(t, x.mark)
}

// load has the witnesses work until the end that it gives is called. Each call is
// answered, unless the service was killed.
func (x *crashes) load(killed *atomic.Bool) (end func() error) {
	var stop atomic.Bool
	failed := make(chan error, 1)
	go func() {
		failed <- x.each(func(w *witness) error {
			err := w.work(&stop)
			if w.doubt != nil && !killed.Load() && !w.failing {
				err = fmt.Errorf("the service answered with %w, and was not killed: %s", w.why, w.doubt)
			}
			return err
		})
	}()
	return func() error {
		stop.Store(true)
		return <-failed
	}
}

// work has the witnesses work until all have made so many calls more.
func (x *crashes) work(t *testing.T, calls int) {
	t.Helper()
	err := x.each(func(w *witness) error {
		for range calls {
			if err := w.take(w.next()); err != nil {
				return err
			}
			if w.doubt != nil {
				return fmt.Errorf("the service answered with %w: %s", w.why, w.doubt)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, x.service.output)
	}
}

// allow has refusals with these codes be no failure; done says whether such a call may
// have been done all the same.
func (x *crashes) allow(done bool, codes ...string) {
	for _, w := range x.witnesses {
		w.allowed = nil
		if len(codes) > 0 {
			w.allowed = func(code string) (bool, bool) { return slices.Contains(codes, code), done }
		}
	}
}

// begin starts the service again, which may be killed at that before.
func (x *crashes) begin(t *testing.T) {
	t.Helper()
	for x.rng.IntN(3) == 0 {
		s := launch(t, x.service.config)
		time.Sleep(time.Duration(x.rng.Int64N(int64(150 * time.Millisecond)))) // anywhere in its start
		s.kill()
	}
	x.service = x.service.restart(t)
	x.service.noBox(t)
	x.connect()
}

// verify compares everything with what the witnesses were answered.
func (x *crashes) verify(t *testing.T) {
	t.Helper()
	err := x.each(func(w *witness) error {
		ctx, cancel := context.WithTimeout(context.Background(), answerBound)
		defer cancel()
		return errors.Join(w.afterAStart(ctx), w.settled(ctx), w.check(ctx))
	})
	if err != nil {
		t.Errorf("%v\n%s", err, x.service.output)
	}
	x.service.noLitter(t, x.witnesses)
	if t.Failed() {
		t.FailNow()
	}
}

// tell says what was done.
func (x *crashes) tell(t *testing.T) {
	t.Helper()
	answers, refusals := map[string]int{}, map[string]int{}
	for _, w := range x.witnesses {
		for operation, n := range w.answers {
			answers[operation] += n
		}
		for code, n := range w.refusals {
			refusals[code] += n
		}
	}
	var b strings.Builder
	for _, operation := range slices.Sorted(maps.Keys(answers)) {
		fmt.Fprintf(&b, " %s %d", operation, answers[operation])
	}
	t.Logf("answers:%s; refusals: %v", b.String(), refusals)
}

func TestNothingAnsweredIsLostAtACrash(t *testing.T) {
	for _, tier := range tiers() {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			x := underLoad(t, config{tier: tier}, 6)
			defer x.tell(t)
			for round := range crashRounds(t, 7) {
				x.crash(t)
				x.begin(t)
				x.verify(t)
				if t.Failed() {
					t.Fatalf("in round %d", round)
				}
			}
		})
	}
}
