// Package inside reaches the files of one environment's folder.
//
// Everything in the folder is hostile, and may change at any moment. So every path
// is resolved by the kernel below the folder's own descriptor (openat2(2)), what was
// found is held by a descriptor and looked at through that, and all of it is done as
// the environment's user (package fsuser): where a path leads somewhere else than was
// thought, it leads to what that user may do there himself.
//
// What is not protected: a program inside may change names and contents between two
// calls. Whoever needs two things to be one step says how he gets that.
package inside

import (
	"os"
	"path"
	"strings"

	"envapi/sandbox/fsuser"
)

// Root is the folder of one environment. Its methods may be called from many
// goroutines.
type Root struct {
	dir *os.File
	uid int
	// aliases are the absolute paths that mean the folder itself.
	aliases []string
}

// NewRoot makes a Root of the folder that dir is open on, for the user uid (0: the
// service's own), which commands see at each of aliases. It takes dir over.
func NewRoot(dir *os.File, uid int, aliases ...string) *Root {
	r := &Root{dir: dir, uid: uid}
	for _, alias := range aliases {
		if alias = path.Clean(alias); path.IsAbs(alias) && alias != "/" {
			r.aliases = append(r.aliases, alias)
		}
	}
	return r
}

// Close lets go of the folder.
func (r *Root) Close() error { return r.dir.Close() }

// Descriptor is the folder itself, O_PATH or open for reading; it stays the root's.
func (r *Root) Descriptor() *os.File { return r.dir }

// As runs do as the environment's user; all other methods must be called in it,
// save where they say otherwise. See fsuser.Do for what do must not do.
func (r *Root) As(do func() error) error { return fsuser.Do(r.uid, r.uid, do) }

// Relative gives what a caller's path means below the folder: "" for the folder
// itself. What is absolute must begin with one of the aliases; else it fails with
// `path_outside_workspace`. Nothing is resolved here, and ".." stands as it is. It
// may be called anywhere.
func (r *Root) Relative(name string) (string, error) {
	if err := checkPath(name); err != nil {
		return "", err
	}
	if !path.IsAbs(name) {
		return name, nil
	}
	if rest, ok := r.below(name); ok {
		return rest, nil
	}
	return "", outside(name)
}

// below takes an alias off an absolute path.
func (r *Root) below(name string) (string, bool) {
	for _, alias := range r.aliases {
		rest, ok := strings.CutPrefix(name, alias)
		if ok && (rest == "" || rest[0] == '/') {
			return strings.TrimLeft(rest, "/"), true
		}
	}
	return "", false
}
