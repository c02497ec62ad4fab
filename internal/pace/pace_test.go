package pace

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"envapi/core"
)

// clock is a clock that the test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newPace(perSecond int) (*Pace, *clock) {
	c := &clock{at: time.Unix(1_800_000_000, 0)}
	return New(perSecond, c.now), c
}

// taken gives how many of n requests at one moment are answered.
func taken(p *Pace, account string, n int) int {
	count := 0
	for range n {
		if p.Take(account) == nil {
			count++
		}
	}
	return count
}

// drained gives how many requests are answered before one is refused.
func drained(p *Pace, account string) int {
	count := 0
	for p.Take(account) == nil {
		count++
	}
	return count
}

func TestABurstAndThenTheRate(t *testing.T) {
	p, clock := newPace(10)
	if n := taken(p, "alice", 1000); n != 200 {
		t.Errorf("%d at once", n)
	}
	clock.at = clock.at.Add(time.Second)
	if n := taken(p, "alice", 1000); n != 10 {
		t.Errorf("%d after a second", n)
	}
	clock.at = clock.at.Add(time.Hour)
	if n := taken(p, "alice", 1000); n != 200 {
		t.Errorf("%d after an hour", n)
	}
}

func TestOverItSaysWhenToComeBack(t *testing.T) {
	p, clock := newPace(10)
	taken(p, "alice", 200)
	var e *core.Error
	if err := p.Take("alice"); !errors.As(err, &e) || e.Code != core.CodeRateLimited {
		t.Fatalf("got %v", err)
	}
	wait, ok := e.Facts["retry_after_ms"].(int64)
	if !ok || wait != 100 {
		t.Fatalf("retry after %v", e.Facts["retry_after_ms"])
	}
	clock.at = clock.at.Add(time.Duration(wait) * time.Millisecond)
	if err := p.Take("alice"); err != nil {
		t.Errorf("then: %v", err)
	}
}

func TestWhoIsRefusedIsNotSetBack(t *testing.T) {
	p, clock := newPace(10)
	taken(p, "alice", 5000) // 4800 of them in vain
	clock.at = clock.at.Add(100 * time.Millisecond)
	if n := taken(p, "alice", 10); n != 1 {
		t.Errorf("%d after a tenth of a second", n)
	}
}

func TestOneAccountDoesNotTakeFromAnother(t *testing.T) {
	p, _ := newPace(1)
	if taken(p, "alice", 100) != 20 || taken(p, "bob", 100) != 20 {
		t.Error("they share a bucket")
	}
}

func TestBucketsThatAreFullAreForgotten(t *testing.T) {
	p, clock := newPace(10)
	taken(p, "alice", 1000)
	for i := range 1000 {
		clock.at = clock.at.Add(time.Second)
		must(t, p.Take(fmt.Sprint("somebody ", i)))
		if held := len(p.young) + len(p.old); held > 2*burst+2 {
			t.Fatalf("%d are held", held)
		}
	}
}

// TestForgettingGivesNothing: who goes on asking has no more than the rate, however
// the forgetting falls.
func TestForgettingGivesNothing(t *testing.T) {
	for _, step := range []time.Duration{100 * time.Millisecond, time.Second, 7 * time.Second, 19 * time.Second} {
		p, clock := newPace(10)
		all := drained(p, "alice")
		begin := clock.at
		for clock.at.Sub(begin) < 5*time.Minute {
			clock.at = clock.at.Add(step)
			all += drained(p, "alice")
		}
		if most := 200 + int(clock.at.Sub(begin).Seconds()*10); all > most {
			t.Errorf("every %v: %d of at most %d", step, all, most)
		}
	}
}

func TestZeroIsNoBound(t *testing.T) {
	p := New(0, nil)
	if p != nil || taken(p, "alice", 100_000) != 100_000 {
		t.Error("it is one")
	}
}

func TestManyAtOnceGetExactlyTheBurst(t *testing.T) {
	p, _ := newPace(10)
	var got atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { got.Add(int64(taken(p, "alice", 20))) })
	}
	all.Wait()
	if got.Load() != 200 {
		t.Errorf("%d", got.Load())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
