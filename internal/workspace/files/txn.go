package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"envapi/internal/workspace/inside"
	"envapi/sandbox/forks"
)

// Txn is a number of changes of names, of which all are made or none, also where the
// service is killed meanwhile. What is to be put is made in its folder first.
//
// Who begins one holds the locks of all its places (Tree.Lock), and discards it at the
// end, whatever became of it.
type Txn struct {
	tree *Tree
	// folder is the staging folder of the environment, and name that of dir in it. A
	// Txn without a name of its own works in folder, with one step.
	folder *os.File
	name   string
	dir    *os.File
	steps  []*step
	chains []*chain
	serial int
	// loose says that what is put may not be durable yet.
	loose bool
	// last is what is done to what was put, where it must be, for the change to be made.
	// It runs as the environment's user.
	last func() error
	// stuck says that steps could be neither made nor taken back.
	stuck bool
}

// Begin begins a transaction.
func (t *Tree) Begin() (*Txn, error) {
	folder, err := t.folder()
	if err != nil {
		return nil, err
	}
	x := &Txn{tree: t, folder: folder, name: "t." + rand.Text(), loose: true}
	err = t.root.As(func() error {
		x.dir, err = makeDirectoryAt(folder, x.name, 0o700)
		return err
	})
	if err == nil {
		if err = t.store.reached("begun"); err != nil {
			x.Discard()
		}
	}
	if err != nil {
		return nil, failed("begin a change", err)
	}
	return x, nil
}

// bare gives a Txn of one step, with no folder of its own.
func (t *Tree) bare() (*Txn, error) {
	folder, err := t.folder()
	if err != nil {
		return nil, err
	}
	return &Txn{tree: t, folder: folder, dir: folder}, nil
}

// makeDirectoryAt makes a directory and opens it.
func makeDirectoryAt(dir *os.File, name string, mode os.FileMode) (*os.File, error) {
	if err := unix.Mkdirat(fd(dir), name, uint32(mode.Perm())); err != nil {
		return nil, err
	}
	f, err := openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(mode); err != nil { // the umask does not matter
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Dir is the transaction's folder, the user's own, on the file system of the
// workspace: what is to be put is made in it, in inside.Root.As. Names that begin with
// "." are the transaction's.
func (x *Txn) Dir() *os.File { return x.dir }

// Put has what stands under a name in the folder moved to a place. With over it
// replaces what stands there, which then is in the folder under that name; where the
// place was judged by Tree.Check it must be just that. Without over nothing may stand
// there. Directories that are missing on the way are made (0755). A directory
// replaces nothing and is not replaced. The place must stay open until Commit is done.
func (x *Txn) Put(name string, at *inside.Place, over bool) {
	x.steps = append(x.steps, &step{op: opPut, name: name, at: at, target: at.Name, over: over})
}

// Take has what stands at a place moved into the folder, and freed with it.
func (x *Txn) Take(at *inside.Place) {
	x.steps = append(x.steps, &step{op: opTake, name: x.fresh(), at: at, target: at.Name})
}

// fresh gives a name in the folder that nobody uses.
func (x *Txn) fresh() string {
	if x.name == "" {
		return "o." + rand.Text()
	}
	x.serial++
	return ".o" + strconv.Itoa(x.serial)
}

// Commit makes all changes, durably, or none. It fails with ErrChanged where
// something else stands at a place than was looked at, with `already_exists`,
// `is_a_directory`, `not_found`, or as inside.Fault says. After a failure the folder
// holds what it held before, and the Txn has no steps: others may be put.
func (x *Txn) Commit(ctx context.Context) error {
	err := x.commit(ctx)
	if err != nil {
		err = join(err, x.unchain())
		x.steps, x.chains = nil, nil
	}
	return err
}

// join is errors.Join, but one error stays what it is.
func join(err, other error) error {
	if other == nil {
		return err
	}
	return errors.Join(err, other)
}

func (x *Txn) commit(ctx context.Context) error {
	if err := x.prepare(ctx); err != nil {
		return err
	}
	if err := x.tree.store.reached("prepared"); err != nil {
		return failed("make a change", err)
	}
	journaled := len(x.steps) > 1 || x.last != nil
	if journaled {
		if err := x.writeJournal(); err != nil {
			return failed("keep a journal of a change", err)
		}
		if err := x.tree.store.reached("journal"); err != nil {
			return failed("keep a journal of a change", err)
		}
	}
	if err := x.run(); err != nil {
		return err
	}
	err := x.sync()
	if err == nil && journaled {
		err = x.tree.store.reached("synced")
		if err == nil && x.last != nil {
			err = join(failed("finish a change", x.tree.root.As(x.last)), x.tree.store.reached("finished"))
		}
		if err == nil {
			err = x.endJournal()
		}
		_ = x.tree.store.reached("ended") // without its journal nothing is undone any more
	}
	if err != nil {
		return x.tree.root.As(func() error { return x.undo(len(x.steps), err) })
	}
	return nil
}

// prepare makes directories that are missing, and durable what is to be put.
func (x *Txn) prepare(ctx context.Context) error {
	if err := x.chain(); err != nil {
		return err
	}
	err := x.tree.root.As(func() error {
		for _, s := range x.steps {
			if err := s.look(x.dir); err != nil {
				return failed("find what is to be put", err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if x.loose {
		if err := unix.Syncfs(fd(x.folder)); err != nil {
			return failed("write files to disk", err)
		}
	}
	// Else a program that is run from a file at once may be "busy".
	if err := forks.Settle(ctx); err != nil {
		return err
	}
	return ctx.Err()
}

// run makes the steps in their order, and takes back those that it made where one
// fails.
func (x *Txn) run() error {
	return x.tree.root.As(func() error {
		for i, s := range x.steps {
			err := s.do(x.dir)
			if err == nil {
				err = x.tree.store.reached("step " + strconv.Itoa(i))
			}
			if err != nil {
				return x.undo(i+1, err)
			}
		}
		return nil
	})
}

// undo takes back the first n steps, the last one first, because of a failure, which
// it gives; another one where it cannot.
func (x *Txn) undo(n int, why error) error {
	var failure error
	for i := n - 1; i >= 0; i-- {
		failure = errors.Join(failure, x.steps[i].undo(x.dir))
	}
	if failure == nil {
		return why
	}
	x.stuck = true
	return fmt.Errorf("cannot take back a change that failed (%v): %w", why, failure) //nolint:errorlint // nobody may try again
}

// sync makes the names durable.
func (x *Txn) sync() error {
	synced := map[lockKey]bool{}
	for _, s := range x.steps {
		key, err := keyOf(s.at)
		if err != nil {
			return failed("make a change durable", err)
		}
		if key.name = ""; synced[key] {
			continue
		}
		synced[key] = true
		if err := x.tree.syncParent(s.at); err != nil {
			return err
		}
	}
	return nil
}

// Discard frees what is in the folder: what was not put, and what was taken away.
// Where that could not be taken back it stays for the next Open, with the journal.
func (x *Txn) Discard() {
	_ = x.tree.store.reached("discarding") // it is all the same now what is left: see below
	if x.name == "" {
		for _, s := range x.steps {
			_ = unix.Unlinkat(fd(x.dir), s.name, 0)
		}
		return
	}
	x.letGo()
	_ = x.dir.Close()
	if x.stuck {
		return
	}
	// What stays behind the next Open takes away.
	_ = x.tree.store.discard(x.folder, x.name, x.tree.id)
}
