package core

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// How often the disk is looked at while something runs. That a writer over its
// limit is stopped within countPause and the time of two counts is documented.
const (
	spacePause = 100 * time.Millisecond // between two looks at the free space
	countPause = 2 * time.Second        // between two counts of a folder
	overPause  = 250 * time.Millisecond // likewise, of one that is over its limit
	// Of environments that rest: between two looks at the free space, where all do,
	// and between two counts of one; and between those that are made since much went
	// away, which are to take no more than a part of the time. There may be a
	// thousand, and it is mostly others that write.
	restLook  = time.Second
	restCount = 5 * time.Minute
	restPause = 10 * time.Second
	restShare = 20
	// When so much went away, all are counted again at once.
	muchBytes = 64 << 20
	muchFiles = 10_000
	// diskCounts is how many folders are counted at one time.
	diskCounts = 4
	// mostPartial is how many counts in a row may miss a part of a folder.
	mostPartial = 5
	// mostHidden is the same of what is hidden, while the host's disk is low.
	mostHidden = 1
)

// diskWatch holds environments to their limits on disk, and keeps any of them
// from filling the disk of all: it counts the folders of those in which something
// runs, and ends everything in one that grows beyond what it may. It looks
// afterwards, so a limit is passed by what is written within the bound above.
// While nothing runs anywhere it does nothing.
//
// Shells that wait to be used are not taken at their word: a program can seem to
// read its terminal, and bash can be made to act on a timer. An environment in which
// there is nothing else rests: it is counted when much went away from the disk, and
// else seldom.
//
// Where environments have no uid of their own it does not see deleted files that
// are still open, and commands can lock the service out of directories.
type diskWatch struct {
	service *Service
	ctx     context.Context // ends with the service
	wake    chan struct{}   // capacity 1: there is something to watch
	turns   chan struct{}   // holds a token for each count
	working sync.WaitGroup

	mu      sync.Mutex
	watched map[string]*watched
	known   map[string]known
	rooms   map[string]*room   // what may still be written through the files API
	mark    DiskUse            // the free space from which a fall is measured
	low     map[string]DiskUse // while the disk is low: what each had before; else nil
	share   DiskUse            // what each may take while it is
}

// watched is an environment in which something may run.
type watched struct {
	owner    Owner
	starts   int // of commands; it tells whether one came meanwhile
	counting bool
	hurry    bool      // to be counted as soon as it may be
	next     time.Time // when it is counted anyway
	soonest  time.Time // so that counts take no more than half of the time
	partial  int       // counts in a row that missed a part
	hidden   int       // counts in a row in which something was hidden
	stale    bool      // the folder is another now, or gone
	// rests is until when it is counted for hurry only where the disk is low; zero
	// where it does not rest.
	rests time.Time
}

// known is the last count of an environment, which stands while nothing runs.
type known struct {
	use  DiskUse
	over bool
	at   time.Time // when it was begun
}

// watchDisk starts the watch, which ends with the service.
func (s *Service) watchDisk() *diskWatch {
	ctx, cancel := context.WithCancel(context.Background())
	d := &diskWatch{
		service: s, ctx: ctx,
		wake: make(chan struct{}, 1), turns: make(chan struct{}, diskCounts),
		watched: map[string]*watched{}, known: map[string]known{}, rooms: map[string]*room{},
	}
	d.working.Go(func() {
		<-s.closing
		cancel()
	})
	d.working.Go(d.run)
	return d
}

// add has an environment watched in which a command is about to start. The first
// time it is counted at once, to know what it had before.
func (d *diskWatch) add(env EnvironmentRecord) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.watched[env.ID]
	if w == nil || !w.rests.IsZero() {
		w = cmp.Or(w, &watched{owner: env.Owner})
		w.next, w.soonest, w.rests = d.firstCount(env.ID), time.Time{}, time.Time{}
		d.watched[env.ID] = w
	}
	w.starts++
	select {
	case d.wake <- struct{}{}:
	default: // it is awake
	}
}

// firstCount is when an environment is counted in which something is about to start.
func (d *diskWatch) firstCount(id string) time.Time {
	switch before, ok := d.known[id]; {
	case !ok:
		return time.Now()
	case before.over:
		return time.Now().Add(overPause)
	}
	return time.Now().Add(countPause)
}

// check refuses a command in an environment that is far over a limit on disk,
// where one after the other could take more before each is stopped.
func (d *diskWatch) check(env EnvironmentRecord) error {
	d.mu.Lock()
	use := d.known[env.ID].use
	d.mu.Unlock()
	limits := d.service.limitsOf(env)
	return firstError(
		checkFar(limitDiskBytes, use.Bytes, limits.DiskBytes, farBytes),
		checkFar(limitFiles, use.Files, limits.Files, farFiles),
	)
}

// forget drops what is known of a folder that was emptied or deleted.
// Nothing runs in it.
func (d *diskWatch) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.watched[id]; w != nil {
		w.stale = true // also for a count that is under way
		delete(d.watched, id)
	}
	delete(d.known, id)
	delete(d.low, id)
	delete(d.rooms, id)
}

func (d *diskWatch) run() {
	for {
		select {
		case <-d.wake:
		case <-d.ctx.Done():
			return
		}
		d.follow()
	}
}

// follow looks until nothing runs any more.
func (d *diskWatch) follow() {
	d.mark = DiskUse{}
	for pause := d.look(time.Now()); pause > 0; pause = d.look(time.Now()) {
		wake := d.wake
		if pause <= spacePause {
			wake = nil // soon enough, however much is started
		}
		select {
		case <-time.After(pause):
		case <-wake:
		case <-d.ctx.Done():
			return
		}
	}
}

// look starts the counts that are due and says when to look again, or 0 where there
// is nothing to watch.
func (d *diskWatch) look(now time.Time) (pause time.Duration) {
	space, err := d.service.Workspaces.Space()
	if err != nil {
		d.service.Log.Error("cannot tell the free space of the disk", "error", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	fell, low := false, false
	if err == nil {
		fell, low = d.fell(space.Free), d.isLow(space)
	}
	if len(d.watched) > 0 {
		pause = restLook
	}
	for id, w := range d.watched {
		w.hurry = w.hurry || fell || low
		if w.rests.IsZero() {
			pause = spacePause
		}
		if !w.due(now, low) {
			continue
		}
		w.counting, w.hurry = true, false
		d.working.Go(func() { d.count(id, w) })
	}
	return pause
}

// due says whether an environment is to be counted now. Low says that the disk is.
func (w *watched) due(now time.Time, low bool) bool {
	hurry := w.hurry && !now.Before(w.soonest) && (low || !now.Before(w.rests))
	return !w.counting && (hurry || !now.Before(w.next))
}

// fell says whether much of the free space went away since it last said so.
func (d *diskWatch) fell(free DiskUse) bool {
	much := d.mark.Bytes-free.Bytes >= muchBytes || d.mark.Files-free.Files >= muchFiles
	if much {
		d.mark = free
	}
	d.mark = DiskUse{max(d.mark.Bytes, free.Bytes), max(d.mark.Files, free.Files)}
	return much
}

// isLow says whether less is free than must be. It begins and ends the time in
// which every environment may take a share only.
func (d *diskWatch) isLow(space DiskSpace) bool {
	reserve := d.service.Limits.Reserved(space.Total)
	low := space.Free.below(reserve)
	switch {
	case low && d.low == nil:
		d.service.Log.Warn("the disk is nearly full: who fills it is stopped", "free_bytes", space.Free.Bytes, "free_files", space.Free.Files)
		d.low, d.share = map[string]DiskUse{}, DiskUse{reserve.Bytes / sharePart, reserve.Files / sharePart}
		for id, k := range d.known {
			d.low[id] = k.use
		}
	case !low:
		d.low = nil
	}
	return low
}

// count counts one environment and stops what runs in it where that must be.
func (d *diskWatch) count(id string, w *watched) {
	select {
	case d.turns <- struct{}{}:
	case <-d.ctx.Done():
		return
	}
	defer func() { <-d.turns }()
	d.mu.Lock()
	starts := w.starts
	d.mu.Unlock()

	begun := time.Now()
	over := d.hold(id, w)
	took := time.Since(begun)
	shells, idle := d.service.isIdle(d.ctx, id)

	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	w.counting, w.soonest, w.next, w.rests = false, now.Add(min(took, countPause)), now.Add(countPause), time.Time{}
	switch {
	case !idle || w.starts != starts || w.stale:
		if over {
			w.next = now.Add(max(overPause, min(took, countPause)))
		}
	case shells == 0:
		delete(d.watched, id)
	default:
		w.soonest, w.next, w.rests = now.Add(countPause), now.Add(restCount), now.Add(max(restPause, restShare*took))
	}
}

// leaves says that an environment is being deleted, archived or reset, or has been, so
// that its folder may go while it is counted.
func (d *diskWatch) leaves(id string, owner Owner) bool {
	now, err := d.service.Store.Environment(d.ctx, owner, id)
	return errors.Is(err, ErrNoRecord) || err == nil && now.State != StateActive
}

// hold counts an environment and holds it to its limits. It says whether it is
// over one.
func (d *diskWatch) hold(id string, w *watched) bool {
	box := d.service.openIn(id) // no other: it may be reset meanwhile
	env, err := d.service.Store.Environment(d.ctx, w.owner, id)
	switch {
	case errors.Is(err, ErrNoRecord):
		d.forget(id)
		return false
	case d.ctx.Err() != nil:
		return false
	case err != nil:
		d.service.Log.Error("cannot read the limits of an environment, holding it to the deployment's", "environment", id, "error", err)
	}
	begun := time.Now()
	use, err := d.service.Workspaces.Measure(d.ctx, id, d.service.temporary(id))
	partial, hidden := errors.Is(err, ErrPartial), errors.Is(err, ErrHidden)
	if err != nil && !partial && !hidden {
		if d.ctx.Err() == nil && !d.leaves(id, w.owner) {
			d.service.Log.Error("cannot count a folder", "environment", id, "error", err)
		}
		return false
	}
	w.partial, w.hidden = inARow(w.partial, partial), inARow(w.hidden, hidden) // nobody else has them
	l := look{use: use, limits: d.service.limitsOf(env), hides: w.hidden > mostHidden}
	d.recall(id, &l)
	verdict := l.judge()
	if verdict != nil {
		verdict = d.confirm(id, &l)
	}
	if verdict == nil && w.partial >= mostPartial {
		verdict = uncountable(l.limits)
	}
	if verdict != nil && box != nil {
		d.service.stopAll(id, box, verdict)
		l.use = d.left(id, l.use)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !w.stale {
		d.known[id] = known{l.use, l.isOver(), begun}
	}
	return l.isOver()
}

// inARow counts what happens again and again.
func inARow(before int, again bool) int {
	if !again {
		return 0
	}
	return before + 1
}

// confirm counts again before anything is ended: a directory that was moved
// during a count may have been counted twice.
func (d *diskWatch) confirm(id string, l *look) *doom {
	again, err := d.service.Workspaces.Measure(d.ctx, id, d.service.temporary(id))
	if err == nil || errors.Is(err, ErrHidden) {
		l.use = DiskUse{min(l.use.Bytes, again.Bytes), min(l.use.Files, again.Files)}
	}
	return l.judge()
}

// left counts what those who were ended have left, which they wrote until then:
// who deletes it must not seem to have written it.
func (d *diskWatch) left(id string, before DiskUse) DiskUse {
	if use, err := d.service.Workspaces.Measure(d.ctx, id, d.service.temporary(id)); err == nil {
		return use
	}
	return before
}

// recall completes a look with what was known before.
func (d *diskWatch) recall(id string, l *look) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, ok := d.known[id]
	l.before, l.first = before.use, !ok
	if d.low == nil {
		return
	}
	base, ok := d.low[id]
	if !ok {
		base = l.use
		d.low[id] = base
	}
	l.low = &DiskUse{base.Bytes + d.share.Bytes, base.Files + d.share.Files}
}

// wait returns when the watch has ended.
func (d *diskWatch) wait() error {
	done := make(chan struct{})
	go func() {
		d.working.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(vacateBound):
		return errors.New("cannot wait any longer for a box that is being ended for its use of the disk")
	}
}
