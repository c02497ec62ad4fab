package core

import (
	"context"
	"sync"
)

// maxWatches is how many watches of an account are open at one time: each has a
// descriptor and a queue of the kernel's.
const maxWatches = 64

// tally counts what accounts have under way. The zero value is none.
type tally struct {
	mu   sync.Mutex
	some map[string]int
}

// enter counts one more, unless there are most. Who enters must leave.
func (w *tally) enter(account, what string, most int) error {
	if !w.add(account, most) {
		return Errorf(CodeRateLimited, "cannot have more than %d %s at one time: end one first, or try again", most, what).
			With("retry_after_ms", retryAfter.Milliseconds())
	}
	return nil
}

// add counts one more, unless there are most, and says whether it did.
func (w *tally) add(account string, most int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.some[account] >= most {
		return false
	}
	if w.some == nil {
		w.some = map[string]int{}
	}
	w.some[account]++
	return true
}

// of gives how many there are.
func (w *tally) of(account string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.some[account]
}

func (w *tally) leave(account string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.some[account]--; w.some[account] == 0 {
		delete(w.some, account)
	}
}

// watching is a watch that is counted.
type watching struct {
	FileWatch
	end func()
}

// Close ends the watch.
func (w *watching) Close() error {
	err := w.FileWatch.Close()
	w.end()
	return err
}

// WatchFiles tells of changes below a directory from now on. The caller must close
// it. It fails with `rate_limited` and the codes of paths.
func (s *Service) WatchFiles(ctx context.Context, c Caller, in WatchFilesInput) (FileWatch, error) {
	if err := checkNUL("path", in.Path); err != nil {
		return nil, err
	}
	f, err := s.readFolder(ctx, c, in.EnvironmentID, in.Restoring)
	if err != nil {
		return nil, err
	}
	if err := s.watches.enter(c.Account, "watches", maxWatches); err != nil {
		f.Close()
		return nil, err
	}
	end := sync.OnceFunc(func() {
		s.watches.leave(c.Account)
		f.Close()
	})
	watch, err := f.Watch(ctx, in.Path, value(in.Recursive, true))
	if err != nil {
		end()
		return nil, err
	}
	return &watching{watch, end}, nil
}
