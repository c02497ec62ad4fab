package find

import (
	"slices"
	"sort"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// mostRemembered is how many directories' names are remembered, each of at most
	// mostRememberedBytes.
	mostRemembered, mostRememberedBytes = 4, 8 << 20
	// leastRemembered is how many names are worth it: a page's.
	leastRemembered = 1000
	// entryBytes is what an entry takes beside its name.
	entryBytes = 32
	// settled is how old the last change of a directory must be for its names to be
	// remembered: more than the step of the clock that the kernel dates changes by
	// (at most 10 ms), so that the next change is dated otherwise.
	settled = 100 * time.Millisecond
)

// memory holds the sorted names of large directories that are listed page by page, for
// who asks for the next page. It is the whole service's, since a Finder may be made for
// each call. What it gives is what the directory holds now: nothing inside can change a
// directory without its change time, nor set that.
type memory struct {
	mutex sync.Mutex
	all   []remembered // the last used first
}

type remembered struct {
	key   moment
	names []entry
}

// moment is a directory as it is.
type moment struct {
	device, inode uint64
	changed       unix.Timespec
}

var pages memory

// momentOf says as what a directory would be remembered; ok is false where it changed
// just now.
func momentOf(n *names) (m moment, ok bool) {
	var st unix.Stat_t
	if unix.Fstat(fd(n.dir), &st) != nil {
		return moment{}, false
	}
	age := time.Since(time.Unix(st.Ctim.Unix()))
	return moment{st.Dev, st.Ino, st.Ctim}, age > settled
}

// get gives the names of a directory; nil is that they are not known.
func (m *memory) get(key moment) []entry {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	i := slices.IndexFunc(m.all, func(r remembered) bool { return r.key == key })
	if i < 0 {
		return nil
	}
	found := m.all[i]
	copy(m.all[1:i+1], m.all[:i])
	m.all[0] = found
	return found.names
}

// put remembers the names of a directory, in place of what it held before.
func (m *memory) put(key moment, names []entry) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.all = slices.DeleteFunc(m.all, func(r remembered) bool {
		return r.key.device == key.device && r.key.inode == key.inode
	})
	m.all = slices.Insert(m.all, 0, remembered{key, names})
	if len(m.all) > mostRemembered {
		m.all[mostRemembered] = remembered{}
		m.all = m.all[:mostRemembered]
	}
}

// recall gives all names of a directory in order, from memory or by reading it for the
// next time; false is that it is too large or changes.
func (m *memory) recall(n *names) ([]entry, bool) {
	key, ok := momentOf(n)
	if !ok {
		return nil, false
	}
	if all := m.get(key); all != nil {
		return all, true
	}
	all, ok := n.all(mostRememberedBytes)
	if again, _ := momentOf(n); !ok || again != key {
		return nil, false
	}
	if len(all) >= leastRemembered {
		m.put(key, all)
	}
	return all, true
}

// all gives the names of a directory in order, if they are not too large.
func (n *names) all(most int) ([]entry, bool) {
	if n.again() != nil {
		return nil, false
	}
	var text []byte
	var ends []int
	var kinds []uint8
	for {
		name, kind, err := n.next()
		if err != nil || len(text)+entryBytes*len(ends) > most {
			return nil, false
		}
		if name == nil {
			break
		}
		text, kinds = append(text, name...), append(kinds, kind)
		ends = append(ends, len(text))
	}
	joined, from := string(text), 0
	sorted := make([]entry, len(ends))
	for i, end := range ends {
		sorted[i] = entry{joined[from:end], kinds[i]}
		from = end
	}
	sortNames(sorted)
	return sorted, true
}

// from gives n of the sorted names from where a page begins, and whether there are
// more.
func from(all []entry, at start, n int) (batch []entry, more bool) {
	i := sort.Search(len(all), func(i int) bool {
		return all[i].name > at.name || !at.after && all[i].name == at.name
	})
	all = all[i:]
	return all[:min(n, len(all))], len(all) > n
}
