package files

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"envapi/internal/workspace/inside"
)

// chain is a directory that is missing on the way to places. It is made in the
// transaction's folder, with everything that is put below it, and put in one step.
type chain struct {
	key   lockKey
	name  string // in the transaction's folder
	moved []link
}

// link is something that was moved below a chain.
type link struct {
	name string   // in the transaction's folder
	dir  *os.File // its directory there
	at   string   // its name in that
}

// chain makes a step of all that go below the same missing directory.
func (x *Txn) chain() error {
	var steps []*step
	for _, s := range x.steps {
		if s.op != opPut || len(s.at.Missing) == 0 {
			steps = append(steps, s)
			continue
		}
		c, isNew, err := x.chainFor(s.at)
		if err != nil {
			return failed("make a directory", err)
		}
		if err := x.tree.root.As(func() error { return x.hang(c, s) }); err != nil {
			return inside.Fault(s.at.Path, err)
		}
		if isNew {
			steps = append(steps, &step{op: opPut, name: c.name, at: s.at, target: s.at.Missing[0], over: true})
		}
	}
	x.steps = steps
	return nil
}

func (x *Txn) chainFor(at *inside.Place) (c *chain, isNew bool, err error) {
	key, err := keyOf(at)
	if err != nil {
		return nil, false, err
	}
	for _, c := range x.chains {
		if c.key == key {
			return c, false, nil
		}
	}
	x.serial++
	c = &chain{key: key, name: ".p" + strconv.Itoa(x.serial)}
	x.chains = append(x.chains, c)
	return c, true, nil
}

// hang moves what a step puts to where it will be below the chain.
func (x *Txn) hang(c *chain, s *step) error {
	dir := x.dir
	for i, name := range s.at.Missing {
		if i == 0 {
			name = c.name
		}
		parent := dir
		next, err := enter(parent, name)
		dir = next
		if parent != x.dir {
			err = join(err, errors.Join(parent.Sync(), parent.Close()))
		}
		if err != nil {
			if next != nil {
				_ = next.Close()
			}
			return err
		}
	}
	if err := renameNew(x.dir, s.name, dir, s.at.Name); err != nil {
		_ = dir.Close()
		return err
	}
	c.moved = append(c.moved, link{s.name, dir, s.at.Name})
	return dir.Sync()
}

// enter opens a directory, and makes it where it is missing.
func enter(parent *os.File, name string) (*os.File, error) {
	f, err := makeDirectoryAt(parent, name, newDirectory)
	if errors.Is(err, unix.EEXIST) {
		return openAt(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	}
	return f, err
}

// unchain moves back what hang has moved.
func (x *Txn) unchain() error {
	return x.tree.root.As(func() error {
		var failure error
		for _, c := range x.chains {
			for _, l := range c.moved {
				failure = errors.Join(failure, renameNew(l.dir, l.at, x.dir, l.name))
			}
		}
		x.letGo()
		return failure
	})
}

// letGo closes the directories of the chains.
func (x *Txn) letGo() {
	for _, c := range x.chains {
		for _, l := range c.moved {
			_ = l.dir.Close()
		}
	}
}
