package find

import "sync"

const (
	// mostWaiting is how many pieces of work may wait: with their paths some MiB, and
	// each batch may hold a descriptor.
	mostWaiting = 4096
	// mostBatches is how many of them may be batches.
	mostBatches = 256
)

// job is a piece of work.
type job interface{ batch() bool }

// directory is one that is to be read.
type directory struct {
	path  string // in the workspace
	rules *rules // of those above
	level int
}

// batch are files of one directory that are to be looked into.
type batch struct {
	in    *folder
	names []string
	shown string // the path of the one file, where it is not by its name in there
}

func (*directory) batch() bool { return false }
func (*batch) batch() bool     { return true }

// queue is the work that waits. What was given last is done first, so that little
// waits however large the tree is.
type queue struct {
	mutex   sync.Mutex
	more    *sync.Cond
	waiting []job
	batches int
	busy    int
	stopped bool
}

// start makes the queue ready, with the first of the work.
func (q *queue) start(j job) {
	q.more = sync.NewCond(&q.mutex)
	q.give(j)
}

// give takes work in; false is that too much waits.
func (q *queue) give(j job) bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if len(q.waiting) >= mostWaiting || j.batch() && q.batches >= mostBatches {
		return false
	}
	if j.batch() {
		q.batches++
	}
	q.waiting = append(q.waiting, j)
	q.more.Signal()
	return true
}

// take waits for work; nil is that all is done.
func (q *queue) take() job {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for len(q.waiting) == 0 && q.busy > 0 && !q.stopped {
		q.more.Wait()
	}
	if len(q.waiting) == 0 || q.stopped {
		return nil
	}
	last := len(q.waiting) - 1
	j := q.waiting[last]
	q.waiting[last] = nil
	q.waiting = q.waiting[:last]
	if j.batch() {
		q.batches--
	}
	q.busy++
	return j
}

// done says that what was taken is done.
func (q *queue) done() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.busy--; q.busy == 0 && len(q.waiting) == 0 {
		q.more.Broadcast()
	}
}

// stop ends all workers.
func (q *queue) stop() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.stopped = true
	q.more.Broadcast()
}

// drop lets go of work that nobody takes any more.
func (q *queue) drop() {
	for _, j := range q.waiting {
		if b, ok := j.(*batch); ok {
			b.in.release()
		}
	}
}
