package find

import (
	"slices"
	"sync"

	"envapi/core"
)

// selection keeps the first matches of a search in the order of paths, while they come
// in any order: as many as the answer may have, and no more.
type selection struct {
	limit     int // matches
	mostBytes int // of text

	mutex   sync.Mutex
	files   []fileMatches // in order
	matches int
	bytes   int
	cut     string // why not all are here
}

type fileMatches struct {
	path    string
	matches []core.SearchMatch
	bytes   int
}

// wants says whether matches of a file could still be among the first, and notes
// that they are not.
func (s *selection) wants(path string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.full() == "" || before(path, s.files[len(s.files)-1].path) {
		return true
	}
	s.cut = s.full()
	return false
}

// full says which bound what is here has reached, or "".
func (s *selection) full() string {
	switch {
	case len(s.files) == 0:
		return ""
	case s.matches >= s.limit:
		return "limit"
	case s.bytes >= s.mostBytes:
		return "bytes"
	}
	return ""
}

// add takes in the first matches of a file.
func (s *selection) add(path string, matches []core.SearchMatch) {
	f := fileMatches{path: path, matches: matches}
	for i := range matches {
		f.bytes += textBytes(&matches[i])
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	at, _ := slices.BinarySearchFunc(s.files, path, func(f fileMatches, path string) int {
		if before(f.path, path) {
			return -1
		}
		return 1
	})
	if why := s.full(); why != "" && at == len(s.files) {
		s.cut = why
		return
	}
	s.files = slices.Insert(s.files, at, f)
	s.matches += len(matches)
	s.bytes += f.bytes
	s.trim()
}

// trim lets go of files that others now stand before.
func (s *selection) trim() {
	for len(s.files) > 1 {
		last := s.files[len(s.files)-1]
		switch {
		case s.matches-len(last.matches) >= s.limit:
			s.cut = "limit"
		case s.bytes-last.bytes >= s.mostBytes:
			s.cut = "bytes"
		default:
			return
		}
		s.matches -= len(last.matches)
		s.bytes -= last.bytes
		s.files[len(s.files)-1] = fileMatches{}
		s.files = s.files[:len(s.files)-1]
	}
}

// result gives what is within the bounds, and which one left something out. One match
// is there always, if need be without what is around it.
func (s *selection) result() (all []core.SearchMatch, cut string) {
	bytes := 0
	for _, f := range s.files {
		for _, m := range f.matches {
			if len(all) == s.limit {
				return all, "limit"
			}
			if bytes += textBytes(&m); bytes > s.mostBytes {
				if len(all) == 0 {
					m.Before, m.After = nil, nil
					all = append(all, m)
				}
				return all, "bytes"
			}
			all = append(all, m)
		}
	}
	return all, s.cut
}

// textBytes is how much text a match has.
func textBytes(m *core.SearchMatch) int {
	n := len(m.Path) + len(m.Text)
	for _, line := range m.Before {
		n += len(line)
	}
	for _, line := range m.After {
		n += len(line)
	}
	return n
}
