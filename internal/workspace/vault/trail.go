package vault

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// mostPath is how many bytes a path in an archive has: readers of tars take 1 MiB of
	// records for each entry, and a path that is written again for each entry would take
	// time. A longer one has only its last name, below cutName.
	mostPath = 32 << 10
	cutName  = "envapi-cut/"
	// topName is the folder itself.
	topName = "./"
)

// trail is the directory that a walk is in: both who packs and who unpacks keep one, and
// so know what the name of an entry must be.
type trail struct {
	path  []byte // below the folder, "" or with a slash at its end
	above []int  // the lengths that it had
}

func (t *trail) push(name string) {
	t.above = append(t.above, len(t.path))
	if name != "" {
		t.path = append(append(t.path, name...), '/')
	}
}

func (t *trail) pop() {
	last := len(t.above) - 1
	t.path, t.above = t.path[:t.above[last]], t.above[:last]
}

// depth is how many levels down what is in the directory is: 1 in the folder itself.
func (t *trail) depth() int { return len(t.above) }

// name is what an entry of the directory is called in an archive.
func (t *trail) name(base string) string {
	if len(t.path)+len(base) > mostPath {
		return cutName + base
	}
	return string(t.path) + base
}

// base gives the last part of an entry's name, which must be one that can be made.
func base(name string) (string, error) {
	name = name[strings.LastIndexByte(name, '/')+1:]
	if name == "" || name == "." || name == ".." || len(name) > unix.NAME_MAX || strings.IndexByte(name, 0) >= 0 {
		return "", errors.New("that is no name of a file")
	}
	return name, nil
}
