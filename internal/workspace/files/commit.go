package files

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

// mostAttempts is how often a change is begun again because a program inside has
// changed what stands there between two looks.
const mostAttempts = 16

// Commit implements core.FileWriter.
func (t *Tree) Commit(ctx context.Context, changes []core.Change) ([]core.Committed, error) {
	c := &commit{tree: t, changes: changes, content: make([]*staged, len(changes))}
	defer c.end()
	for i, change := range changes {
		if change.Put == nil {
			continue
		}
		put, ok := change.Put.(*staged)
		if !ok || put.file == nil || slices.Contains(c.content, put) {
			return nil, errors.New("cannot commit content that was not staged for this change")
		}
		c.content[i] = put
	}
	var done []core.Committed
	err := Again(func() (err error) {
		done, err = c.attempt(ctx)
		return err
	})
	return done, err
}

// Again does over what found that something had changed meanwhile.
func Again(do func() error) error {
	for attempt := 1; ; attempt++ {
		err := do()
		if attempt == mostAttempts || !errors.Is(err, ErrChanged) {
			return err
		}
	}
}

// commit is one call of Commit.
type commit struct {
	tree    *Tree
	changes []core.Change
	content []*staged // of each change; nil takes away
	places  []*inside.Place
	txn     *Txn
}

// end discards what was not committed, and what came back.
func (c *commit) end() {
	for i, change := range c.changes {
		if c.txn != nil && c.txn.stuck && c.content[i] != nil {
			c.content[i].leave()
		}
		if change.Put != nil {
			change.Put.Discard()
		}
	}
	if c.txn != nil {
		c.txn.Discard()
	}
}

func (c *commit) attempt(ctx context.Context) ([]core.Committed, error) {
	defer c.close()
	if err := c.locate(); err != nil {
		return nil, err
	}
	unlock, err := c.tree.Lock(ctx, c.places...)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for i, change := range c.changes {
		if err := c.allow(ctx, change, c.places[i]); err != nil {
			return nil, err
		}
	}
	if err := c.begin(); err != nil {
		return nil, err
	}
	for i, at := range c.places {
		if err := c.add(i, at); err != nil {
			return nil, err
		}
	}
	if err := c.txn.Commit(ctx); err != nil {
		return nil, err
	}
	return c.result()
}

func (c *commit) close() {
	for _, at := range c.places {
		at.Close()
	}
	c.places = nil
}

// locate finds the places; no two changes may be about the same one.
func (c *commit) locate() error {
	seen := map[string]bool{}
	for _, change := range c.changes {
		at, err := c.tree.Locate(change.Path, inside.Mode{
			Follow: !change.Literal, Missing: change.Parents && change.Put != nil,
		})
		if err != nil && change.Put != nil {
			return withoutParents(change.Path, err)
		}
		if err != nil {
			return err
		}
		c.places = append(c.places, at)
		key, err := at.Key()
		if err != nil {
			return failed("look at a directory", err)
		}
		if seen[key] {
			return core.Errorf(core.CodeInvalidArgument,
				"cannot change %q twice at once: give one change of each file", change.Path).
				With("field", "path").With("path", change.Path)
		}
		seen[key] = true
	}
	return nil
}

// allow says whether a change may be made of what stands there.
func (c *commit) allow(ctx context.Context, change core.Change, at *inside.Place) error {
	link := at.Exists() && at.Kind() == unix.S_IFLNK
	if link && !change.Literal {
		return changed(change.Path) // it was followed, and is a link since
	}
	if err := c.tree.Check(ctx, change.Path, at, change.If); err != nil {
		return err
	}
	switch {
	case !at.Exists() && change.Put == nil:
		return c.tree.NotFound(change.Path, at)
	case !at.Exists() && strings.HasSuffix(change.Path, "/"):
		return inside.Fault(change.Path, unix.EISDIR) // as open(2) says
	case !at.Exists():
		return nil
	case at.Kind() == unix.S_IFDIR:
		return inside.Fault(change.Path, unix.EISDIR)
	case change.Put == nil || link:
		return nil
	case at.Kind() != unix.S_IFREG:
		return at.MustBeRegular(change.Path)
	case !c.tree.mayWrite(&at.Stat):
		return inside.Fault(change.Path, unix.EACCES)
	}
	return nil
}

// begin takes a transaction with a folder where one is needed: for several steps, and
// for directories that are missing.
func (c *commit) begin() (err error) {
	switch {
	case c.txn != nil && c.txn.name != "":
		return nil
	case len(c.places) == 1 && len(c.places[0].Missing) == 0:
		c.txn, err = c.tree.bare()
		return err
	}
	c.txn, err = c.tree.Begin()
	if err == nil {
		c.txn.loose = false // what is staged is durable already
	}
	return err
}

// add makes a step of a change.
func (c *commit) add(i int, at *inside.Place) error {
	put, change := c.content[i], c.changes[i]
	if put == nil {
		c.txn.Take(at)
		return nil
	}
	if err := c.equip(put, change, at); err != nil {
		return err
	}
	if put.dir != c.txn.dir {
		err := c.tree.root.As(func() error { return renameNew(put.dir, put.name, c.txn.dir, put.name) })
		if err != nil {
			return failed("stage a file", err)
		}
		put.dir = c.txn.dir
	}
	c.txn.Put(put.name, at, true)
	return nil
}

func (c *commit) equip(put *staged, change core.Change, at *inside.Place) error {
	if at.Exists() || change.Like == "" {
		return put.equip(at, change.Mode)
	}
	like, err := c.tree.Locate(change.Like, inside.Mode{})
	if err != nil {
		return err
	}
	defer like.Close()
	return put.equip(like, change.Mode)
}

// result says what was done. What was put is discarded no more: its name in the
// folder is what it replaced, or nothing.
func (c *commit) result() ([]core.Committed, error) {
	done := make([]core.Committed, len(c.changes))
	for i, change := range c.changes {
		done[i].Created = change.Put != nil && !c.places[i].Exists()
		path := c.tree.relative(change.Path)
		done[i].Info.Path = path
		if put := c.content[i]; put != nil {
			st, err := statOf(put.file)
			if err != nil {
				return nil, failed("look at a file", err)
			}
			done[i].Info = InfoOf(path, &st)
			done[i].Info.ETag = put.tag
		}
	}
	return done, nil
}
