package core

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// room is what the folder of an environment may still take, as far as it is written
// through the files API: each such write is taken out of it before it is made, so that
// no number of them at one time passes a limit. What programs inside write is the disk
// watch's, which looks afterwards.
type room struct {
	turn  chan struct{} // holds a token: the right to what follows
	base  DiskUse       // at the last count
	taken DiskUse       // by writes that are under way
	since DiskUse       // by writes that were made since the count was begun
	whole chan struct{} // closed when who has taken all there was is done; nil: nobody has
	at    time.Time     // when the last count was begun; zero: there was none
	moved atomic.Bool   // whether what was changed since may have made this too much
}

const (
	// roomFresh is how long a count serves to refuse: as long as the disk watch waits
	// between two.
	roomFresh = countPause
	// roomBound is how long a count may hold up a write, and who has taken all there was;
	// the limit of files is counted in about a second.
	roomBound = 10 * time.Second
	// spaceStep is after how many bytes the free space of the host is looked at again.
	spaceStep = 1 << 20
	blockSize = 4096 // in which common file systems give space
)

// roomOf gives the room of an environment.
func (d *diskWatch) roomOf(id string) *room {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rooms[id]
	if r == nil {
		r = &room{turn: make(chan struct{}, 1)}
		d.rooms[id] = r
	}
	return r
}

// knows gives the last count of an environment that the watch made, where it was begun
// after some time.
func (d *diskWatch) knows(id string, after time.Time) (DiskUse, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k, ok := d.known[id]
	return k.use, ok && k.at.After(after)
}

// learn takes a count that somebody else made, where nothing runs that is watched.
func (d *diskWatch) learn(id string, use DiskUse, limits boxLimits, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watched[id] == nil {
		d.known[id] = known{use, use.Bytes > limits.DiskBytes || use.Files > limits.Files, at}
	}
}

// acquire waits for its turn.
func (r *room) acquire(ctx context.Context) (release func(), err error) {
	select {
	case r.turn <- struct{}{}:
		return func() { <-r.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// attempt does something in its turn, and again when who has taken all the room is done
// with it, where that is why it failed.
func (r *room) attempt(ctx context.Context, do func() error) error {
	late := time.After(roomBound)
	for {
		release, err := r.acquire(ctx)
		if err != nil {
			return err
		}
		err = do()
		whole := r.whole
		release()
		if !errors.Is(err, errOccupied) {
			return err
		}
		select {
		case <-whole:
		case <-late:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// claim is what a write has taken of the room.
type claim struct {
	f     *folder
	taken DiskUse
	begun time.Time // when it first took some
	whole bool
}

// claim begins one.
func (f *folder) claim() *claim { return &claim{f: f} }

// grow has the claim be at least of some size. It fails with `quota_exceeded`, or with
// `disk_full` where the host's disk is low.
func (c *claim) grow(ctx context.Context, to DiskUse) error {
	more := DiskUse{max(0, to.Bytes-c.taken.Bytes), max(0, to.Files-c.taken.Files)}
	if more == (DiskUse{}) {
		return nil
	}
	r := c.f.room
	return r.attempt(ctx, func() error {
		if err := c.f.fits(ctx, more); err != nil {
			return err
		}
		if c.begun.IsZero() {
			c.begun = time.Now()
		}
		r.taken = r.taken.plus(more)
		c.taken = c.taken.plus(more)
		return nil
	})
}

// takeAll takes all the room there is, and says how much that is; for what cannot say
// before how much it needs. Other writes that need some wait meanwhile, for a time.
func (c *claim) takeAll(ctx context.Context) (DiskUse, error) {
	r := c.f.room
	err := r.attempt(ctx, func() error {
		if r.whole != nil {
			return occupied()
		}
		if err := c.f.count(ctx); err != nil {
			return err
		}
		limits, used := c.f.service.limitsOf(c.f.env), c.f.used()
		c.taken = DiskUse{max(0, limits.DiskBytes-used.Bytes), max(0, limits.Files-used.Files)}
		c.whole, r.whole = true, make(chan struct{})
		r.taken = r.taken.plus(c.taken)
		return nil
	})
	return c.taken, err
}

// settle ends the claim. Made says whether it was written.
func (c *claim) settle(made bool) {
	r := c.f.room
	r.turn <- struct{}{} // who has it counts for a bounded time
	defer func() { <-r.turn }()
	r.taken = r.taken.minus(c.taken)
	switch {
	case c.whole:
		close(r.whole)
		r.whole = nil
		r.at = time.Time{} // nobody knows how much it was
	case made:
		r.since = r.since.plus(c.taken)
		if r.at.After(c.begun) { // the last count may have met it in its place already
			r.moved.Store(true)
		}
	}
	c.taken = DiskUse{}
}

func (use DiskUse) plus(more DiskUse) DiskUse {
	return DiskUse{use.Bytes + more.Bytes, use.Files + more.Files}
}

func (use DiskUse) minus(less DiskUse) DiskUse {
	return DiskUse{use.Bytes - less.Bytes, use.Files - less.Files}
}

// errOccupied is the cause of an `unavailable`: somebody has taken all the room.
var errOccupied = errors.New("all the room is taken")

func occupied() error {
	return unavailable("cannot say how much room is left in the environment while an archive or a directory is put into it: try again when that is done").Because(errOccupied)
}

// used is what is used, with what is under way. The caller has the turn.
func (f *folder) used() DiskUse {
	r := f.room
	use := r.base.plus(r.since)
	if known, ok := f.service.disk.knows(f.env.ID, r.at); ok {
		use = DiskUse{max(use.Bytes, known.Bytes), max(use.Files, known.Files)}
	}
	return use.plus(r.taken)
}

// fits refuses more than there is room for. The caller has the turn. Before it
// refuses, what is there is counted, unless it just was and nothing was changed since.
func (f *folder) fits(ctx context.Context, more DiskUse) error {
	if err := f.service.hasSpace(); err != nil {
		return err
	}
	r := f.room
	if r.at.IsZero() {
		if err := f.count(ctx); err != nil {
			return err
		}
	}
	err := f.judge(more)
	if err != nil && (r.moved.Load() || time.Since(r.at) > roomFresh) {
		if err := f.count(ctx); err != nil {
			return err
		}
		err = f.judge(more)
	}
	if err != nil && r.whole != nil {
		return occupied()
	}
	return err
}

func (f *folder) judge(more DiskUse) error {
	limits, used := f.service.limitsOf(f.env), f.used()
	return firstError(
		f.within(limitDiskBytes, more.Bytes, used.Bytes, limits.DiskBytes),
		f.within(limitFiles, more.Files, used.Files, limits.Files),
	)
}

func (f *folder) within(limit string, more, used, allowed int64) error {
	if more <= 0 || used+more <= allowed {
		return nil
	}
	return Errorf(CodeQuotaExceeded, "the folder holds %d, with what is being written, and may hold %d (limit %s), so that %d more do not fit: delete files, with delete_file or exec, or call reset_environment", used, allowed, limit, more).
		With("limit", limit).With("allowed", allowed).With("used", used)
}

// count counts the folder. The caller has the turn.
func (f *folder) count(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, roomBound)
	defer cancel()
	r, s := f.room, f.service
	begun := time.Now()
	r.moved.Store(false)
	use, err := s.Workspaces.Measure(bounded, f.env.ID, s.temporary(f.env.ID))
	switch {
	case err == nil, errors.Is(err, ErrPartial), errors.Is(err, ErrHidden):
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return unavailable("cannot count what the environment holds within %v: try again", roomBound).Because(err)
	default:
		return err
	}
	r.base, r.since, r.at = use, DiskUse{}, begun
	s.disk.learn(f.env.ID, use, s.limitsOf(f.env), begun)
	return nil
}

// hasSpace refuses writes while the host's disk is low.
func (s *Service) hasSpace() error { return s.hasPart(1) }

// hasPart refuses them while less than a part is free of what must be: half of it where
// part is 2.
func (s *Service) hasPart(part int64) error {
	space, err := s.Workspaces.Space()
	if err != nil {
		return nil //nolint:nilerr // who cannot tell finds out when it writes
	}
	reserve := s.Limits.Reserved(space.Total)
	if space.Free.below(DiskUse{reserve.Bytes / part, reserve.Files / part}) {
		return Errorf(CodeDiskFull, "the host's disk is nearly full: try again when its operator has made room")
	}
	return nil
}

// blocks is what a file of a size takes on disk, or a little more.
func blocks(size int64) int64 { return (size + blockSize - 1) / blockSize * blockSize }

// metered is content on its way in that is taken out of the room as it comes.
type metered struct {
	ctx    context.Context
	claim  *claim
	from   io.Reader
	free   int64 // what the file that it replaces gives back
	read   int64
	looked int64 // read, when the host's disk was last looked at
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	m.read += int64(n)
	if m.read-m.looked >= spaceStep {
		m.looked = m.read
		if err := m.claim.f.service.hasSpace(); err != nil {
			return 0, err
		}
	}
	if grown := m.claim.grow(m.ctx, DiskUse{Bytes: blocks(m.read) - m.free}); grown != nil {
		return 0, grown
	}
	return n, err
}
