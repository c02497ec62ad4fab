package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// levelsAtOnce is how deep a tree is gone into at one time: a descriptor
	// for each level. Most trees are less deep.
	levelsAtOnce = 16
	// namesAtOnce is how many names of each of these levels are in memory.
	namesAtOnce = 256
)

// tree is a folder in the trash that is being emptied.
//
// It is gone into levelsAtOnce deep. Directories that have entries at that
// depth are moved up into a second tree, which is then emptied in the same
// way. So memory and descriptors are bounded for every depth and width, and
// what a crash leaves are just one or two trees in the trash.
type tree struct {
	trash     *os.File
	id        string // of the environment
	name      string // in trash
	next      string // the second tree; "" while there is none
	done      int    // entries removed or moved so far
	turn      time.Duration
	notBefore time.Time
}

// empty removes the tree. It fails where nothing more can be done now, and
// with the context's error when that ends; it can be called again.
func (t *tree) empty(ctx context.Context) error {
	for {
		if err := t.emptyTop(ctx); err != nil {
			return err
		}
		if t.next == "" {
			return nil
		}
		t.name, t.next = t.next, ""
	}
}

// emptyTop removes the tree's top folder, with what lies deep in it moved into
// the next tree.
func (t *tree) emptyTop(ctx context.Context) error {
	if err := removeEntry(t.trash, t.name); !isFull(err) {
		return err
	}
	top, err := openDir(t.trash, t.name)
	if err != nil {
		return err
	}
	defer top.Close()
	for {
		before := t.done
		failure := t.sweep(ctx, top, func(name string) error {
			return t.removeDir(ctx, top, top, name, levelsAtOnce)
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := removeEntry(t.trash, t.name); !isFull(err) {
			return err
		}
		if t.done == before {
			return fmt.Errorf("cannot empty a folder of the trash: %w", failure)
		}
	}
}

// removeDir removes a directory with entries from parent. Directories that are
// more than levels below it are moved up.
func (t *tree) removeDir(ctx context.Context, top, parent *os.File, name string, levels int) error {
	dir, err := openDir(parent, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	failure := t.sweep(ctx, dir, func(name string) error {
		if levels == 0 {
			return t.lift(top, dir, name)
		}
		return t.removeDir(ctx, top, dir, name, levels-1)
	})
	if failure != nil {
		return failure
	}
	return removeEntry(parent, name)
}

// lift moves a directory from dir into the next tree. Where there can be none,
// on a full disk, it goes into top, which is emptied until nothing is left.
func (t *tree) lift(top, dir *os.File, name string) error {
	to, toName := top, rand.Text()
	if t.next == "" {
		next := trashName(t.id)
		if err := unix.Mkdirat(fd(t.trash), next, 0o700); err == nil {
			t.next = next
		}
	}
	if t.next != "" {
		to, toName = t.trash, t.next+"/"+toName // our own folder, with no link in it
	}
	return moveDir(dir, name, to, toName, unix.RENAME_NOREPLACE)
}

// sweep goes once through dir. It removes every entry that it can and gives
// the directories that have entries to full. It goes on after a failure and
// gives the last one.
func (t *tree) sweep(ctx context.Context, dir *os.File, full func(name string) error) (failure error) {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return err
	}
	for {
		names, readErr := dir.Readdirnames(namesAtOnce)
		for _, name := range names {
			err := removeEntry(dir, name)
			if isFull(err) {
				err = full(name)
			}
			if err == nil {
				t.done++
			} else {
				failure = err
			}
			if ctx.Err() != nil { // not before: each turn gets something done
				return ctx.Err()
			}
		}
		if errors.Is(readErr, io.EOF) {
			return failure
		}
		if readErr != nil {
			return readErr
		}
	}
}
