package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// node is an entry of a workspace.
type node struct {
	kind byte   // f, d or l, as find names them
	mode int64  // its permissions
	data string // of a file its content, of a link its target
}

// tree is what a workspace holds, by path.
type tree map[string]node

// files are the paths of files with at most so many bytes, in order.
func (t tree) files(most int) []string {
	var paths []string
	for p, n := range t {
		if n.kind == 'f' && len(n.data) <= most && p != runsFile {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}

// directories are the paths of directories, in order.
func (t tree) directories() []string {
	var paths []string
	for p, n := range t {
		if n.kind == 'd' {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}

// below says whether a path is that of a tree's root or of something in it.
func below(p, root string) bool { return p == root || strings.HasPrefix(p, root+"/") }

// remove takes away a path with all below it.
func (t tree) remove(root string) {
	maps.DeleteFunc(t, func(p string, _ node) bool { return below(p, root) })
}

// copies puts what is at a path at another one, too.
func (t tree) copies(from, to string) {
	for p, n := range maps.Clone(t) {
		if below(p, from) {
			t[to+strings.TrimPrefix(p, from)] = n
		}
	}
}

// dwelling is what a witness knows of one of its environments.
type dwelling struct {
	id, name, label string
	state           string
	tree            tree // also while it is archived
}

// but is a copy that was changed.
func (d *dwelling) but(change func(*dwelling)) *dwelling {
	c := *d
	c.tree = maps.Clone(d.tree)
	if c.tree == nil {
		c.tree = tree{}
	}
	change(&c)
	return &c
}

// variants are what a use that did nothing may leave: what is archived may have been
// restored for it.
func (d *dwelling) variants() []*dwelling {
	if d.state == "active" {
		return []*dwelling{d}
	}
	return []*dwelling{d, d.but(func(d *dwelling) { d.state = "active" })}
}

// differs says in what one is other than the one seen, or "". Either may be nil, for
// none. What is in an archive is not seen.
func (d *dwelling) differs(seen *dwelling) string {
	switch {
	case d == nil && seen == nil:
		return ""
	case d == nil || seen == nil:
		return fmt.Sprintf("there is one: %v, and should be: %v", seen != nil, d != nil)
	case d.state != seen.state || d.name != seen.name || d.label != seen.label:
		return fmt.Sprintf("it is %s %q %q, not %s %q %q", seen.state, seen.name, seen.label, d.state, d.name, d.label)
	case seen.state != "active" || maps.Equal(d.tree, seen.tree):
		return ""
	}
	var all []string
	for p, want := range d.tree {
		if got, there := seen.tree[p]; !there {
			all = append(all, p+" is gone")
		} else if got != want {
			all = append(all, fmt.Sprintf("%s is %s, not %s", p, got, want))
		}
	}
	for p := range seen.tree {
		if _, known := d.tree[p]; !known {
			all = append(all, p+" is too many")
		}
	}
	return strings.Join(all, "; ")
}

// String is a node for messages.
func (n node) String() string {
	return fmt.Sprintf("%c %04o %d bytes %.40q", n.kind, n.mode, len(n.data), n.data)
}

// ran is what a witness knows of a command.
type ran struct {
	id, env, shell string
	status, reason string
	exit           int
	out            string   // what it wrote, as far as anybody was told
	whole          bool     // it wrote no more
	may            []string // for what it may have been killed: a call that nobody answered
}

// opened is what a witness knows of a shell.
type opened struct {
	id, env       string
	terminal      bool
	state, reason string
	out           string // of its terminal, as far as anybody was told
	may           []string
	busy          *ran
}

// ended notes that everything that ran in an environment was ended for a reason;
// where that is not sure, that it may have been.
func (w *witness) ended(env, reason string, sure bool) {
	for _, r := range w.commands {
		if r.env == env && r.status == "running" {
			r.kill(reason, sure)
		}
	}
	for _, o := range w.shells {
		if o.env == env && o.state == "open" {
			o.shut(reason, sure)
		}
	}
}

// kill notes that a command was killed, or may have been. Where it may have been before,
// nobody knows which of the two it was.
func (r *ran) kill(reason string, sure bool) {
	if sure && len(r.may) == 0 {
		r.status, r.reason, r.exit = "killed", reason, -1
	} else {
		r.may = append(r.may, reason)
	}
}

// shut notes that a shell was closed, or may have been.
func (o *opened) shut(reason string, sure bool) {
	if !sure || len(o.may) > 0 {
		o.may = append(o.may, reason)
		return
	}
	o.state, o.reason, o.busy = "closed", reason, nil
}

// forget takes an environment out of the ledger, with all that was in it.
func (w *witness) forget(env string) {
	delete(w.envs, env)
	maps.DeleteFunc(w.commands, func(_ string, r *ran) bool { return r.env == env })
	maps.DeleteFunc(w.shells, func(_ string, o *opened) bool { return o.env == env })
	w.gone = append(w.gone, env)
	if len(w.gone) > 10 {
		w.gone = w.gone[1:]
	}
}
