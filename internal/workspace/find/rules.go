package find

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"envapi/core/pattern"
)

// mostChainBytes is how long all .gitignore files between the workspace and a
// directory may be together, since they are in memory at once.
const mostChainBytes = 4 << 20

// rules are those of a directory's .gitignore file, with those above.
type rules struct {
	above *rules
	own   *pattern.Ignore
	from  int // where a path below their directory begins
	bytes int // of this file and those above
}

// exclude says whether a path is ignored. What a repository keeps for itself always is.
func (r *rules) exclude(path string, e entry) bool {
	if e.name == ".git" {
		return true
	}
	for ; r != nil; r = r.above {
		switch r.own.Match(path[r.from:], e.dir()) {
		case pattern.Excluded:
			return true
		case pattern.Included:
			return false
		}
	}
	return false
}

// with adds the rules of a directory. What stands there and is no regular file is
// none; where not all of the file counts, whole is false.
func (r *rules) with(dir *os.File, path string) (all *rules, whole bool) {
	text, err := readRules(dir)
	if err != nil {
		return r, gone(err)
	}
	if len(text) == 0 {
		return r, true
	}
	held := len(text)
	if r != nil {
		held += r.bytes
	}
	if held > mostChainBytes {
		return r, false
	}
	own := pattern.ParseIgnore(text)
	if own.Empty() {
		return r, !own.Cut()
	}
	from := 0
	if path != "" {
		from = len(path) + 1
	}
	return &rules{above: r, own: own, from: from, bytes: held}, !own.Cut()
}

// readRules reads the file, and a byte more than its bound where it is too long.
func readRules(dir *os.File) ([]byte, error) {
	n, err := openBelow(dir, ".gitignore", 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(n)
	var st unix.Stat_t
	if err := unix.Fstat(n, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, err
	}
	text := make([]byte, min(st.Size, pattern.MostIgnoreBytes+1))
	have := 0
	for have < len(text) {
		got, err := unix.Read(n, text[have:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || got <= 0 {
			return text[:have], err
		}
		have += got
	}
	return text, nil
}
