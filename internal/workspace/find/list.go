package find

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/core/pattern"
	"envapi/internal/workspace/files"
	"envapi/internal/workspace/turns"
)

const (
	// mostNames is how many names of one directory are held at a time: at most 4 MiB.
	// A larger directory is read anew for each such batch.
	mostNames = 16 << 10
	// mostHeld is how many names of all levels are, but for fewNames on each level.
	mostHeld, fewNames = 2 * mostNames, 64
)

// lists are those under way: each has a thread, and names in memory.
var lists = turns.New("lists", 16)

// List gives a page of entries; see core.FileFinder. A deadline of ctx ends the page
// early, with Next, once anything was looked at. It fails with `invalid_argument` for
// a malformed glob or After, `rate_limited` where others of the account go first until
// that deadline, and as inside.Root.Locate does.
func (f *Finder) List(ctx context.Context, q core.ListQuery) (core.Listing, error) {
	if _, err := pattern.CompileGlobs(q.Globs); err != nil {
		return core.Listing{}, wrong("glob", err)
	}
	leave, err := lists.Take(ctx)
	if err != nil {
		return core.Listing{}, err
	}
	defer leave()
	l := &listing{ctx: ctx, query: q, known: f.known, buffer: make([]byte, namesBytes)}
	err = f.root.As(func() error {
		b, err := f.open(q.Path, q.Ignored)
		if err != nil {
			return err
		}
		defer b.close()
		return l.run(b)
	})
	return l.page, err
}

// listing is a page on its way.
type listing struct {
	ctx    context.Context
	query  core.ListQuery
	known  func(*unix.Stat_t) string
	filter filter
	page   core.Listing
	// skipped is what was passed over since the last entry of the page.
	skippedHidden, skippedIgnored int
	held                          int    // names in memory
	seen                          string // the path that was looked at last
	buffer                        []byte // for names
	stat                          unix.Stat_t
}

// errFull ends a walk because the page is.
var errFull = errors.New("the page is full")

func (l *listing) run(b *base) error {
	after, ok := l.query.After, true
	if b.path != "" && after != "" {
		after, ok = strings.CutPrefix(after, b.path+"/")
	}
	if !ok {
		return core.Errorf(core.CodeInvalidArgument, "cannot go on after %q: it is not below %q", l.query.After, b.path).With("field", "cursor")
	}
	l.filter = newFilter(l.query.Globs, l.query.Hidden, l.query.Ignored, b)
	err := l.directory(b.dir, b.path, b.rules, after, 1)
	switch {
	case errors.Is(err, errFull):
		l.page.Next = l.page.Entries[len(l.page.Entries)-1].Path
		return nil
	case errors.Is(err, context.DeadlineExceeded) && l.seen != "":
		l.page.Next = l.seen
	case err != nil:
		return err
	}
	l.count()
	return nil
}

// count takes what was passed over into the page.
func (l *listing) count() {
	l.page.SkippedHidden += l.skippedHidden
	l.page.SkippedIgnored += l.skippedIgnored
	l.skippedHidden, l.skippedIgnored = 0, 0
}

// start is where the names of a directory begin for a page.
type start struct {
	name  string
	after bool   // only behind the name; else it is the first
	below string // of the name itself: what was listed last below it
	seen  bool   // the name itself was listed
}

// directory lists what is in a directory, its rules known, in order.
func (l *listing) directory(dir *os.File, path string, up *rules, after string, level int) error {
	if !l.query.Ignored {
		var whole bool
		if up, whole = up.with(dir, path); !whole {
			l.unreadable(join(path, ".gitignore"))
		}
	}
	var at start
	if after != "" {
		at.seen = true
		at.name, at.below, _ = strings.Cut(after, "/")
	}
	reader := &names{dir: dir, buffer: l.buffer}
	for n := l.query.Limit - len(l.page.Entries) + fewNames; ; n *= 4 {
		n = max(fewNames, min(n, mostNames, mostHeld-l.held))
		batch, more, err := l.smallest(reader, at, n)
		if err == nil && len(batch) > 0 {
			l.held += len(batch)
			err = l.entries(dir, path, batch, up, at, level)
			l.held -= len(batch)
			at = start{name: batch[len(batch)-1].name, after: true}
		}
		if err != nil || !more {
			return err
		}
	}
}

// smallest gives the first n names of a directory from where it begins, in order, and
// whether there are more.
func (l *listing) smallest(reader *names, at start, n int) (batch []entry, more bool, err error) {
	if at.seen || at.after {
		// Not the first time: the whole of it is worth remembering.
		if all, ok := pages.recall(reader); ok {
			batch, more = from(all, at, n)
			return batch, more, nil
		}
	}
	if err := reader.again(); err != nil {
		return nil, false, nil // it cannot be read any more, and is as if empty
	}
	c := choice{most: n}
	for {
		name, kind, err := reader.next()
		if err != nil || name == nil {
			c.cut()
			return c.batch, c.more, nil
		}
		if len(reader.left) == 0 && l.ctx.Err() != nil {
			return nil, false, l.ctx.Err()
		}
		if at.takes(name) {
			c.add(name, kind)
		}
	}
}

// takes says whether a name is of the page or comes behind it.
func (at *start) takes(name []byte) bool {
	return string(name) > at.name || !at.after && string(name) == at.name
}

// choice is the smallest of many names.
type choice struct {
	most  int
	batch []entry // at most twice as many, in no order
	last  string  // the largest that can be among them, once there are enough
	more  bool    // there were others
}

func (c *choice) add(name []byte, kind uint8) {
	if c.last != "" && string(name) > c.last {
		c.more = true
		return
	}
	if c.batch = append(c.batch, entry{string(name), kind}); len(c.batch) == 2*c.most {
		c.cut()
		c.last = c.batch[c.most-1].name
	}
}

// cut sorts the names and lets go of those that are too many.
func (c *choice) cut() {
	sortNames(c.batch)
	if len(c.batch) > c.most {
		clear(c.batch[c.most:])
		c.batch, c.more = c.batch[:c.most], true
	}
}

func sortNames(all []entry) {
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
}

func (l *listing) entries(dir *os.File, path string, batch []entry, up *rules, at start, level int) error {
	for _, e := range batch {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		if !known(dir, &e) {
			continue
		}
		name, after := join(path, e.name), ""
		is := l.filter.judge(name, e, up)
		if at.seen && e.name == at.name {
			// It was on the page before, with what is below it up to there.
			after = at.below
		} else if err := l.entry(dir, name, e, is); err != nil {
			return err
		} else {
			l.seen = name
		}
		if is.enter && (l.query.Depth == 0 || level < l.query.Depth) {
			if err := l.enter(dir, name, e, up, after, level+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry takes an entry into the page, or counts that it was passed over.
func (l *listing) entry(dir *os.File, path string, e entry, is fate) error {
	switch {
	case is.isHidden:
		l.skippedHidden++
	case is.excluded:
		l.skippedIgnored++
	case is.take:
		info, ok := l.info(dir, path, e)
		if !ok {
			return nil
		}
		if len(l.page.Entries) >= l.query.Limit {
			return errFull
		}
		l.count()
		l.page.Entries = append(l.page.Entries, info)
	}
	return nil
}

// enter lists what is in a directory below another one.
func (l *listing) enter(above *os.File, path string, e entry, up *rules, after string, level int) error {
	if level > mostLevels {
		l.unreadable(path)
		return nil
	}
	dir, err := openDirectory(above, e.name)
	if err != nil {
		if !gone(err) {
			l.unreadable(path)
		}
		return nil
	}
	defer dir.Close()
	return l.directory(dir, path, up, after, level)
}

// info says what an entry is; false is that it is gone.
func (l *listing) info(dir *os.File, path string, e entry) (core.FileInfo, bool) {
	if unix.Fstatat(fd(dir), e.name, &l.stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return core.FileInfo{}, false
	}
	info := files.InfoOf(path, &l.stat)
	switch info.Type {
	case core.TypeFile:
		info.ETag = l.known(&l.stat)
	case core.TypeSymlink:
		to := make([]byte, unix.PathMax)
		if n, err := unix.Readlinkat(fd(dir), e.name, to); err == nil {
			info.LinkTarget = string(to[:n])
		}
	}
	return info, true
}

func (l *listing) unreadable(path string) {
	if len(l.page.Unreadable) < mostUnreadable {
		l.page.Unreadable = append(l.page.Unreadable, path)
	}
}
