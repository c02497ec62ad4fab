package find

import (
	"sync"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/core/pattern"
)

const (
	// windowBytes is how much of a file is in memory at a time; nearly every file of
	// text is smaller, and read by one call.
	windowBytes = 1 << 20
	// multilineBytes is the window with multiline, which must hold all of a file.
	multilineBytes = 8 << 20
	// mostFileBytes is the longest file that is looked into.
	mostFileBytes = 256 << 20
)

// windows are buffers that are not in use.
var windows = sync.Pool{New: func() any {
	b := make([]byte, windowBytes)
	return &b
}}

// worker looks into files, one after another.
type worker struct {
	search *search
	total  core.SearchResult // what it counted
	scan   *pattern.Scan
	pooled *[]byte
	buffer []byte // the window
}

func newWorker(s *search) *worker {
	w := &worker{search: s}
	switch {
	case s.line == nil:
	case s.query.Multiline:
		w.scan = s.line.NewScan()
		w.buffer = make([]byte, min(multilineBytes, s.line.MostInput()))
	default:
		w.scan = s.line.NewScan()
		w.pooled = windows.Get().(*[]byte)
		w.buffer = (*w.pooled)[:min(windowBytes, s.line.MostInput())]
	}
	return w
}

func (w *worker) release() {
	if w.pooled != nil {
		windows.Put(w.pooled)
	}
}

// named takes a file that was looked for by its name.
func (w *worker) named(path string) {
	w.total.FilesMatched++
	w.total.TotalMatches++
	w.search.kept.add(path, []core.SearchMatch{{Path: path}})
}

// file looks into a file.
func (w *worker) file(in *folder, name, path string) {
	if w.scan == nil {
		w.named(path)
		return
	}
	n, err := openBelow(in.dir, name, 0)
	if err != nil {
		if !gone(err) {
			noteUnreadable(&w.total, path)
		}
		return
	}
	defer unix.Close(n)
	var st unix.Stat_t
	if unix.Fstat(n, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return // it was changed for something else
	}
	most := int64(mostFileBytes)
	if w.search.query.Multiline {
		most = int64(len(w.buffer))
	}
	if st.Size > most {
		w.total.SkippedLarge++
		return
	}
	r := reading{worker: w, file: n, left: st.Size, path: path, line: 1, text: w.buffer[:0:len(w.buffer)]}
	if err := r.run(); err != nil {
		noteUnreadable(&w.total, path)
	}
}
