package files

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/turns"
)

const (
	// tagBytes is how much of a SHA-256 makes an ETag: 192 bits, of which no two
	// contents are ever found that share them.
	tagBytes = 24
	// mostTags bounds the memory of tags that are kept: about 250 bytes each.
	mostTags = 1 << 16
	// restful is how long a file must have rested before it was read for its tag to
	// be kept: more than two ticks of the coarsest clock that file systems have
	// (10 ms), so that every later write shows in its times.
	restful = 25 * time.Millisecond
	// pieceBytes is how much of a file is in memory while it is read.
	pieceBytes = 256 << 10
	// mostReadings is how often a file is read again that changed meanwhile.
	mostReadings = 4
)

// tagOf gives the ETag that a content's hash makes.
func tagOf(h hash.Hash) string {
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:tagBytes])
}

// pieces are buffers of pieceBytes.
var pieces = sync.Pool{New: func() any { return new([pieceBytes]byte) }}

// largeTags are the readings under way of files of more than largeBytes: each keeps a
// processor busy.
var largeTags = turns.New("readings of files for their ETags", 8)

const largeBytes = 1 << 20

// readTag reads an open file for its ETag, and gives the stat that the file had all
// the while. It fails with `unavailable` for a file that changes whenever it is read.
func (s *Store) readTag(ctx context.Context, name string, f *os.File) (string, unix.Stat_t, error) {
	st, err := statOf(f)
	if err != nil {
		return "", st, failed("look at a file", err)
	}
	if st.Size > largeBytes {
		leave, err := largeTags.Take(ctx)
		if err != nil {
			return "", st, err
		}
		defer leave()
	}
	for range mostReadings {
		var before, after unix.Stat_t
		if err := unix.Fstat(fd(f), &before); err != nil {
			return "", before, failed("look at a file", err)
		}
		began := time.Now()
		tag, err := hashOf(ctx, f)
		if err != nil {
			return "", before, failed("read a file", err)
		}
		if err := unix.Fstat(fd(f), &after); err != nil {
			return "", before, failed("look at a file", err)
		}
		if sameStat(&before, &after) {
			s.tags.put(&before, tag, began)
			return tag, before, nil
		}
	}
	return "", unix.Stat_t{}, core.Errorf(core.CodeUnavailable,
		"cannot give the ETag of %q: it changes while it is read; try again", name).With("path", name)
}

func hashOf(ctx context.Context, f io.ReaderAt) (string, error) {
	buffer := pieces.Get().(*[pieceBytes]byte) //nolint:forcetypeassert // the pool's own
	defer pieces.Put(buffer)
	h := sha256.New()
	for offset := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := f.ReadAt(buffer[:], offset)
		h.Write(buffer[:n])
		offset += int64(n)
		if err == io.EOF {
			return tagOf(h), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// sameStat says whether a file was not written between two looks, as far as its
// times tell.
func sameStat(a, b *unix.Stat_t) bool {
	return a.Ctim == b.Ctim && sameContent(a, b)
}

// sameContent is sameStat across a rename, which changes the ctime.
func sameContent(a, b *unix.Stat_t) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Mode&unix.S_IFMT == b.Mode&unix.S_IFMT &&
		a.Size == b.Size && a.Mtim == b.Mtim
}

// tags are the ETags that are known to hold as long as a file's stat is what it was.
// The one that was not asked for the longest makes room for a new one.
type tags struct {
	mu    sync.Mutex
	known map[tagKey]*list.Element
	order list.List // of *knownTag; the last is the next to go
}

type tagKey struct {
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
}

type knownTag struct {
	key tagKey
	tag string
}

func tagKeyOf(st *unix.Stat_t) tagKey {
	return tagKey{st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim}
}

// get gives the tag of a file with that stat, or "".
func (t *tags) get(st *unix.Stat_t) string {
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.known[tagKeyOf(st)]
	if e == nil {
		return ""
	}
	t.order.MoveToFront(e)
	return e.Value.(*knownTag).tag //nolint:forcetypeassert // nothing else is in it
}

// put keeps the tag of a file that was read from began on, unless the file may have
// been written in the same tick of the clock as before.
func (t *tags) put(st *unix.Stat_t, tag string, began time.Time) {
	changed := max(st.Mtim.Nano(), st.Ctim.Nano())
	if began.UnixNano()-changed < int64(restful) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := tagKeyOf(st)
	if e := t.known[key]; e != nil {
		t.order.MoveToFront(e)
		return
	}
	if t.known == nil {
		t.known = map[tagKey]*list.Element{}
	}
	t.known[key] = t.order.PushFront(&knownTag{key, tag})
	if t.order.Len() > mostTags {
		last := t.order.Remove(t.order.Back()).(*knownTag) //nolint:forcetypeassert // nothing else is in it
		delete(t.known, last.key)
	}
}
