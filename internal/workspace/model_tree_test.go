package workspace

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"maps"
	"os"
	stdpath "path"
	"path/filepath"
	"slices"
	"strings"

	"envapi/core"
)

// modelNode is a file, a directory or a link of the model.
type modelNode struct {
	kind    core.FileType
	mode    fs.FileMode
	content string // of a link its target
	up      *modelNode
	kids    map[string]*modelNode
}

func newModelDirectory(up *modelNode) *modelNode {
	return &modelNode{kind: core.TypeDirectory, mode: 0o755, up: up, kids: map[string]*modelNode{}}
}

// newModelRoot is the folder itself.
func newModelRoot() *modelNode {
	root := newModelDirectory(nil)
	root.mode = 0o700
	return root
}

func (n *modelNode) is(kind core.FileType) bool { return n != nil && n.kind == kind }

// copy gives a copy of all of it that is in another directory.
func (n *modelNode) copy(up *modelNode) *modelNode {
	c := *n
	c.up = up
	if n.kids != nil {
		c.kids = map[string]*modelNode{}
		for name, kid := range n.kids {
			c.kids[name] = kid.copy(&c)
		}
	}
	return &c
}

// holds says whether other is n or below it.
func (n *modelNode) holds(other *modelNode) bool {
	for ; other != nil; other = other.up {
		if other == n {
			return true
		}
	}
	return false
}

func (n *modelNode) tag() string {
	sum := sha256.Sum256([]byte(n.content))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}

// each calls do for all that is below a directory, in the order of paths.
func (n *modelNode) each(at string, do func(path string, n *modelNode)) {
	for _, name := range slices.Sorted(maps.Keys(n.kids)) {
		kid, path := n.kids[name], filepath.Join(at, name)
		do(path, kid)
		kid.each(path, do)
	}
}

// describe gives a line for each thing below a directory.
func (n *modelNode) describe() (lines []string) {
	n.each("", func(path string, n *modelNode) {
		lines = append(lines, describe(path, n.kind, n.mode, n.content))
	})
	return lines
}

func describe(path string, kind core.FileType, mode fs.FileMode, content string) string {
	if kind == core.TypeSymlink {
		mode = 0
	}
	return fmt.Sprintf("%q %s %o %q", path, kind, mode, content)
}

// describeFolder does the same for a folder of the host.
func describeFolder(dir, at string) (lines []string, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, at))
	for _, e := range entries {
		path := filepath.Join(at, e.Name())
		host := filepath.Join(dir, path)
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		kind, content, below := core.TypeFile, "", []string(nil)
		switch {
		case e.IsDir():
			kind = core.TypeDirectory
			below, err = describeFolder(dir, path)
		case e.Type() == fs.ModeSymlink:
			kind = core.TypeSymlink
			content, err = os.Readlink(host)
		default:
			var text []byte
			text, err = os.ReadFile(host)
			content = string(text)
		}
		if err != nil {
			return nil, err
		}
		lines = append(append(lines, describe(path, kind, info.Mode().Perm(), content)), below...)
	}
	return lines, err
}

// modelPlace is where a path leads: a name in a directory, what stands there, and the
// directories that are missing before it.
type modelPlace struct {
	dir     *modelNode
	name    string // "." is dir itself
	node    *modelNode
	missing []string
}

// put puts a node at the place, and makes what is missing.
func (p *modelPlace) put(n *modelNode) {
	for _, name := range p.missing {
		d := newModelDirectory(p.dir)
		p.dir.kids[name], p.dir = d, d
	}
	n.up, p.dir.kids[p.name] = p.dir, n
}

// modelWalk is a path on the way to its place.
type modelWalk struct {
	root, here *modelNode
	left       []string
	slash      bool // the path ends in one
	links      int
}

// locate says where a path leads; a link at its end is followed with follow, and where
// a slash comes after it.
func (n *modelNode) locate(path string, follow, missing bool) (*modelPlace, core.Code) {
	if rest, ok := modelAlias(path); ok {
		path = rest
	} else if strings.HasPrefix(path, "/") {
		return nil, core.CodePathOutside
	}
	w := &modelWalk{root: n, here: n}
	w.aim(path, nil)
	for len(w.left) > 0 {
		at, code := w.step(follow, missing)
		if clean := stdpath.Clean(strings.TrimLeft(path, "/")); code == core.CodeNotFound && (clean == ".." || strings.HasPrefix(clean, "../")) {
			code = core.CodePathOutside // whatever is there
		}
		if at != nil || code != "" {
			return at, code
		}
	}
	return &modelPlace{dir: w.here, name: ".", node: w.here}, ""
}

func modelAlias(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, "/workspace")
	return rest, ok && (rest == "" || rest[0] == '/')
}

// aim has the walk go on along a path, and then along the rest.
func (w *modelWalk) aim(path string, rest []string) {
	trimmed := strings.TrimRight(path, "/")
	if len(rest) == 0 {
		w.slash = w.slash || trimmed != path
	}
	w.left = append(strings.Split(trimmed, "/"), rest...)
}

func (w *modelWalk) step(follow, missing bool) (*modelPlace, core.Code) {
	name := w.left[0]
	w.left = w.left[1:]
	switch {
	case name == "" || name == ".":
		return nil, ""
	case name == ".." && w.here == w.root:
		return nil, core.CodePathOutside
	case name == "..":
		w.here = w.here.up
		return nil, ""
	}
	kid, last := w.here.kids[name], len(w.left) == 0
	switch {
	case kid == nil:
		return w.absent(name, missing)
	case kid.is(core.TypeSymlink) && (!last || follow || w.slash):
		return nil, w.follow(kid)
	case kid.is(core.TypeDirectory) && !last:
		w.here = kid
		return nil, ""
	case !kid.is(core.TypeDirectory) && (!last || w.slash):
		return nil, core.CodeNotADirectory
	}
	return &modelPlace{dir: w.here, name: name, node: kid}, ""
}

func (w *modelWalk) follow(link *modelNode) core.Code {
	if w.links++; w.links > 40 {
		return core.CodeSymlinkLoop
	}
	to := link.content
	if rest, ok := modelAlias(to); ok {
		w.here, to = w.root, strings.TrimLeft(rest, "/")
	} else if strings.HasPrefix(to, "/") {
		return core.CodePathOutside
	}
	w.aim(to, w.left)
	return ""
}

func (w *modelWalk) absent(name string, missing bool) (*modelPlace, core.Code) {
	if len(w.left) == 0 {
		return &modelPlace{dir: w.here, name: name}, ""
	}
	all := []string{name}
	for _, next := range w.left {
		if next == ".." {
			missing = false
		}
		if next != "" && next != "." {
			all = append(all, next)
		}
	}
	if !missing {
		return nil, core.CodeNotFound
	}
	return &modelPlace{dir: w.here, name: all[len(all)-1], missing: all[:len(all)-1]}, ""
}
