package vault

import (
	"os"

	"golang.org/x/sys/unix"
)

// links knows again what has several names. Each takes memory from its first name to its
// last, about 60 bytes.
type links struct {
	next uint64
	seen map[identity]linked
}

// identity is a file for as long as it lives: a number of an inode alone may soon be
// another one's, while programs run.
type identity struct {
	ino  uint64
	born unix.StatxTimestamp
}

type linked struct {
	number uint64 // from 1
	left   uint64 // names that are still to come
}

// see takes note of a name. It gives the number of what has several, 0 where it has one,
// and whether another name of it was there before.
func (l *links) see(leaf *os.File, st *unix.Stat_t) (number uint64, again bool) {
	if st.Nlink < 2 {
		return 0, false
	}
	id := identity{ino: st.Ino}
	var more unix.Statx_t
	if unix.Statx(fd(leaf), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &more) == nil && more.Mask&unix.STATX_BTIME != 0 {
		id.born = more.Btime
	}
	if known, ok := l.seen[id]; ok {
		if known.left--; known.left == 0 {
			delete(l.seen, id)
		} else {
			l.seen[id] = known
		}
		return known.number, true
	}
	if l.seen == nil {
		l.seen = map[identity]linked{}
	}
	l.next++
	l.seen[id] = linked{number: l.next, left: st.Nlink - 1}
	return l.next, false
}
