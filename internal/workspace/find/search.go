package find

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/core/pattern"
	"envapi/internal/workspace/inside"
	"envapi/internal/workspace/turns"
)

const (
	// mostWorkers bounds how many files one search reads at a time, each into a
	// buffer of its own.
	mostWorkers = 16
	// batchFiles is how many files of a directory are one piece of work: of a large
	// one there is some for everybody, and taking it costs little beside reading.
	batchFiles = 32
)

// searches are those under way: each keeps all processors busy, and has a window in
// memory and a thread for each of them.
var searches = turns.New("searches", 4)

// processors are what the searches of an account have of them together: as many as one
// has that is alone.
var processors = turns.New("searches", runtime.NumCPU())

// Search looks for lines, or for files by name; see core.FileFinder. All files are
// looked into, so that the totals are of all, and what is kept is the first of them. A
// deadline of ctx ends it early, with Truncated. It fails with `invalid_argument` for a
// malformed pattern or glob, with `rate_limited` where others of the account go first
// until that deadline, and as inside.Root.Locate does.
func (f *Finder) Search(ctx context.Context, q core.SearchQuery) (core.SearchResult, error) {
	s := &search{ctx: ctx, query: q, kept: selection{limit: q.Limit, mostBytes: q.MaxBytes}}
	if _, err := pattern.CompileGlobs(q.Globs); err != nil {
		return core.SearchResult{}, wrong("glob", err)
	}
	if q.Pattern != "" {
		line, err := pattern.CompileLine(q.Pattern, pattern.LineOptions{Literal: q.Literal, Fold: q.Fold, Multiline: q.Multiline})
		if err != nil {
			field := "pattern"
			if q.Literal {
				field = "literal"
			}
			return core.SearchResult{}, wrong(field, err)
		}
		s.line = line
	}
	leave, err := searches.Take(ctx)
	if err != nil {
		return core.SearchResult{}, err
	}
	defer leave()
	if err := f.root.As(func() error { return s.begin(f, q.Path) }); err != nil {
		return core.SearchResult{}, err
	}
	defer s.base.close()
	if err := s.work(f.root); err != nil {
		return core.SearchResult{}, err
	}
	return s.result()
}

// search is one on its way. The queue is what all workers share.
type search struct {
	ctx    context.Context
	query  core.SearchQuery
	line   *pattern.Line // nil where files are looked for by name
	base   *base
	filter filter
	queue  queue
	kept   selection
	mutex  sync.Mutex // of total
	total  core.SearchResult
}

func (s *search) begin(f *Finder, name string) error {
	b, err := f.open(name, s.query.Ignored)
	var known *core.Error
	if errors.As(err, &known) && known.Code == core.CodeNotADirectory {
		return s.beginFile(f, name)
	}
	if err != nil {
		return err
	}
	s.base = b
	s.filter = newFilter(s.query.Globs, s.query.Hidden, s.query.Ignored, b)
	s.queue.start(&directory{path: b.path, rules: b.rules, level: 1})
	return nil
}

// beginFile begins a search in one file, which is looked into whatever rules say.
func (s *search) beginFile(f *Finder, name string) error {
	b, file, err := f.openFile(name)
	if err != nil {
		return err
	}
	s.base = b
	s.filter = newFilter(s.query.Globs, true, true, b)
	in := &folder{dir: b.dir, path: b.path, held: 2} // the other one is the base
	one := &batch{in: in, shown: file.shown}
	if s.filter.globs.Match(file.shown[s.filter.from:], false) {
		one.names = []string{file.name}
	}
	s.queue.start(one)
	return nil
}

// work runs the workers until all is done or the time is up.
func (s *search) work(root *inside.Root) error {
	var all sync.WaitGroup
	failed := make([]error, min(runtime.NumCPU(), mostWorkers))
	for i := range failed {
		all.Go(func() {
			standBack()
			failed[i] = root.As(func() error {
				s.worker()
				return nil
			})
			if failed[i] != nil {
				s.queue.stop()
			}
		})
	}
	all.Wait()
	s.queue.drop()
	return errors.Join(failed...)
}

// worker takes work until there is none.
func (s *search) worker() {
	w := newWorker(s)
	defer w.release()
	for {
		j := s.queue.take()
		if j == nil {
			break
		}
		s.inTurn(func() { w.do(j) })
		s.queue.done()
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	add(&s.total, &w.total)
}

// inTurn does a piece of work when the account has a processor to spare. When the time
// of the search is up it is done at once, which is to drop it.
func (s *search) inTurn(do func()) {
	if leave, err := processors.Take(s.ctx); err == nil {
		defer leave()
	}
	do()
}

// add takes what one worker counted into the whole.
func add(all, one *core.SearchResult) {
	all.FilesMatched += one.FilesMatched
	all.TotalMatches += one.TotalMatches
	all.FilesSearched += one.FilesSearched
	all.SkippedIgnored += one.SkippedIgnored
	all.SkippedHidden += one.SkippedHidden
	all.SkippedBinary += one.SkippedBinary
	all.SkippedLarge += one.SkippedLarge
	for _, path := range one.Unreadable {
		noteUnreadable(all, path)
	}
}

func noteUnreadable(r *core.SearchResult, path string) {
	if len(r.Unreadable) < mostUnreadable {
		r.Unreadable = append(r.Unreadable, path)
	}
}

func (s *search) result() (core.SearchResult, error) {
	err := s.ctx.Err()
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return core.SearchResult{}, err
	}
	s.total.Matches, s.total.Truncated = s.kept.result()
	if err != nil {
		s.total.Truncated = "time"
	}
	return s.total, nil
}

// do is a piece of work: a directory that is to be read, or files of one.
func (w *worker) do(j job) {
	switch j := j.(type) {
	case *directory:
		w.directory(j)
	case *batch:
		for _, name := range j.names {
			if w.search.ctx.Err() != nil {
				break
			}
			path := j.shown
			if path == "" {
				path = join(j.in.path, name)
			}
			w.file(j.in, name, path)
		}
		j.in.release()
	}
}

// give gives work to whoever is free, or does it where too much waits already.
func (w *worker) give(j job) {
	if !w.search.queue.give(j) {
		w.do(j)
	}
}

// directory reads a directory and gives away what is in it.
func (w *worker) directory(j *directory) {
	in, ok := w.openFolder(j)
	if !ok {
		return
	}
	defer in.release()
	names := &names{dir: in.dir, buffer: make([]byte, namesBytes)}
	var now []string
	for w.search.ctx.Err() == nil {
		name, kind, err := names.next()
		if err != nil || name == nil {
			break
		}
		e := entry{string(name), kind}
		if !known(in.dir, &e) || !w.entry(in, e, j.level) {
			continue
		}
		if now = append(now, e.name); len(now) == batchFiles {
			w.give(in.batch(now))
			now = nil
		}
	}
	if len(now) > 0 {
		w.give(in.batch(now))
	}
}

func (w *worker) openFolder(j *directory) (*folder, bool) {
	below := "."
	if len(j.path) > w.search.filter.from {
		below = j.path[w.search.filter.from:]
	}
	dir, err := openDirectory(w.search.base.dir, below)
	if err != nil {
		if !gone(err) {
			noteUnreadable(&w.total, j.path)
		}
		return nil, false
	}
	in := &folder{dir: dir, path: j.path, rules: j.rules, held: 1}
	if !w.search.query.Ignored {
		var whole bool
		if in.rules, whole = j.rules.with(dir, j.path); !whole {
			noteUnreadable(&w.total, join(j.path, ".gitignore"))
		}
	}
	return in, true
}

// entry looks at an entry of a directory, and says whether it is a file to look into.
func (w *worker) entry(in *folder, e entry, level int) bool {
	path := join(in.path, e.name)
	is := w.search.filter.judge(path, e, in.rules)
	switch {
	case is.isHidden:
		w.total.SkippedHidden++
	case is.excluded:
		w.total.SkippedIgnored++
	case is.enter && level < mostLevels:
		w.give(&directory{path: path, rules: in.rules, level: level + 1})
	case is.enter:
		noteUnreadable(&w.total, path)
	}
	if !is.take {
		return false
	}
	if w.search.line == nil && (e.kind == unix.DT_REG || e.kind == unix.DT_LNK) {
		w.named(path)
		return false
	}
	return e.kind == unix.DT_REG
}

// folder is an open directory that files are read in.
type folder struct {
	dir   *os.File
	path  string
	rules *rules
	mutex sync.Mutex
	held  int // by how many
}

func (f *folder) batch(names []string) *batch {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.held++
	return &batch{in: f, names: names}
}

func (f *folder) release() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.held--; f.held == 0 {
		_ = f.dir.Close()
	}
}
