package workspace

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"envapi/internal/faults"
)

const (
	// A tree is worked on for a while and then the next has its turn, so that
	// a huge one does not hold up the others. Its turns grow, because to find
	// its place again in a huge directory takes long too.
	firstTurn = 100 * time.Millisecond
	maxTurn   = 10 * time.Second
	// retryAfter is how long a tree rests that cannot be emptied.
	retryAfter = time.Minute
)

// janitor empties the trash in the background, all trees by turns.
type janitor struct {
	trash  *os.File
	wake   chan struct{} // capacity 1: there is a new tree
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	trees   []*tree
	remains map[string]*remains // by environment
}

// remains is what is left of an environment's folders.
type remains struct {
	trees int
	freed []func() // to be called when none is left
}

func newJanitor(trash *os.File) *janitor {
	return &janitor{
		trash:   trash,
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		remains: map[string]*remains{},
	}
}

// start takes over what an earlier run left and begins to work.
func (j *janitor) start() error {
	names, err := j.trash.Readdirnames(-1)
	if err != nil {
		return failed("list the trash", err)
	}
	for _, name := range names {
		id, _, _ := strings.Cut(name, ".")
		j.add(id, name, nil)
	}
	ctx, cancel := context.WithCancel(context.Background())
	j.cancel = cancel
	go j.run(ctx)
	return nil
}

// stop ends the work within one entry of a directory.
func (j *janitor) stop() {
	j.cancel()
	<-j.done
}

// add has a tree of the trash emptied. freed, if it is not nil, is called when
// nothing is left of the environment.
func (j *janitor) add(id, name string, freed func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.remains[id]
	if r == nil {
		r = &remains{}
		j.remains[id] = r
	}
	r.trees++
	if freed != nil {
		r.freed = append(r.freed, freed)
	}
	j.trees = append(j.trees, &tree{trash: j.trash, id: id, name: name, turn: firstTurn})
	select {
	case j.wake <- struct{}{}:
	default: // it is awake
	}
}

// whenFree calls freed, if it is not nil, when nothing is left of an
// environment, which may be now.
func (j *janitor) whenFree(id string, freed func()) {
	if freed == nil {
		return
	}
	j.mu.Lock()
	r := j.remains[id]
	if r != nil {
		r.freed = append(r.freed, freed)
	}
	j.mu.Unlock()
	if r == nil {
		freed()
	}
}

func (j *janitor) run(ctx context.Context) {
	defer close(j.done)
	for {
		t := j.next(ctx)
		if t == nil {
			return
		}
		j.work(ctx, t)
	}
}

// work gives a tree its turn.
func (j *janitor) work(ctx context.Context, t *tree) {
	ctx, cancel := context.WithTimeout(ctx, t.turn)
	defer cancel()
	var err error
	if t.turn == firstTurn {
		err = faults.At("workspace.trash", "begun")
	}
	if err == nil {
		err = t.empty(ctx)
	}
	if err == nil {
		j.finish(t)
		return
	}
	if ctx.Err() == nil {
		t.notBefore = time.Now().Add(retryAfter)
	}
	t.turn = min(2*t.turn, maxTurn)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.trees = append(j.trees, t)
}

// next waits for a tree whose turn it is; nil when ctx ends.
func (j *janitor) next(ctx context.Context) *tree {
	for ctx.Err() == nil {
		t, retry := j.pick()
		if t != nil {
			return t
		}
		select {
		case <-j.wake:
		case <-retry:
		case <-ctx.Done():
		}
	}
	return nil
}

// pick takes the first tree that does not rest. If there is none, it gives a
// channel that tells when to look again; nil where no tree rests either.
func (j *janitor) pick() (*tree, <-chan time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, t := range j.trees {
		if time.Now().After(t.notBefore) {
			j.trees = append(j.trees[:i], j.trees[i+1:]...)
			return t, nil
		}
	}
	if len(j.trees) > 0 {
		return nil, time.After(retryAfter)
	}
	return nil, nil
}

// finish takes note that a tree is gone.
func (j *janitor) finish(t *tree) {
	_ = faults.At("workspace.trash", "emptied")
	_ = j.trash.Sync() // should it come back after a power loss, it is emptied again
	for _, freed := range j.leave(t.id) {
		freed()
	}
	_ = faults.At("workspace.trash", "freed")
}

// leave counts one tree of an environment less. With the last one it gives
// what is to be called.
func (j *janitor) leave(id string) []func() {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.remains[id]
	r.trees--
	if r.trees > 0 {
		return nil
	}
	delete(j.remains, id)
	return r.freed
}
