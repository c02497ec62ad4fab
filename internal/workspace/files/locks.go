package files

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"envapi/internal/workspace/inside"
)

// locks are held on names in directories, by whoever changes what stands there.
type locks struct {
	mu   sync.Mutex
	held map[lockKey]*lock
}

// lockKey is a name in a directory, however that is reached.
type lockKey struct {
	dev, ino uint64
	name     string
}

func (k lockKey) compare(other lockKey) int {
	return cmp.Or(cmp.Compare(k.dev, other.dev), cmp.Compare(k.ino, other.ino), cmp.Compare(k.name, other.name))
}

// lock is held by who has put something into held; wanted counts who has it or waits.
type lock struct {
	held   chan struct{}
	wanted int
}

// keyOf gives what is locked for a place. Where directories are missing on the way,
// that is the first of them.
func keyOf(at *inside.Place) (lockKey, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd(at.Dir), &st); err != nil {
		return lockKey{}, err
	}
	name := at.Name
	if len(at.Missing) > 0 {
		name = at.Missing[0]
	}
	return lockKey{st.Dev, st.Ino, name}, nil
}

// lock waits for all keys, until ctx ends. They are taken in one order by everybody,
// so that no two wait for each other.
func (l *locks) lock(ctx context.Context, keys []lockKey) (unlock func(), err error) {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, lockKey.compare)
	keys = slices.Compact(keys)
	for i, key := range keys {
		entry := l.want(key)
		select {
		case entry.held <- struct{}{}:
		case <-ctx.Done():
			l.leave(key)
			l.release(keys[:i])
			return nil, ctx.Err()
		}
	}
	return func() { l.release(keys) }, nil
}

func (l *locks) want(key lockKey) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry := l.held[key]
	if entry == nil {
		if l.held == nil {
			l.held = map[lockKey]*lock{}
		}
		entry = &lock{held: make(chan struct{}, 1)}
		l.held[key] = entry
	}
	entry.wanted++
	return entry
}

// leave forgets a key that nobody wants any more.
func (l *locks) leave(key lockKey) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry := l.held[key]
	if entry.wanted--; entry.wanted == 0 {
		delete(l.held, key)
	}
	return entry
}

func (l *locks) release(keys []lockKey) {
	for _, key := range keys {
		<-l.leave(key).held
	}
}
