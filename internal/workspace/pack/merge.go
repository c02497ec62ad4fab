package pack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/internal/workspace/files"
	"envapi/internal/workspace/inside"
)

// mostMerged is how many directories that are there an archive may be unpacked over,
// and how many files it may replace: for each a descriptor is held.
var mostMerged = 1024 // tests make it less

// mostPut is how many names an archive may bring to directories that are there: each is
// a step, held in memory, and all are made while others wait.
var mostPut = 16 << 10 // tests make it less

// merge brings what was unpacked to where it belongs: each topmost thing that is not
// there yet by one step.
type merge struct {
	root      *inside.Root
	tree      *files.Tree
	unpacker  *unpacker
	name      string // of the directory that is unpacked into
	overwrite bool

	steps   []step
	targets []*os.File        // directories that are there
	over    int               // files that are there
	later   map[string]uint32 // see unpacker.finish
}

// step puts one thing.
type step struct {
	staged string // in the transaction's folder
	at     *inside.Place
	over   bool
}

func (m *merge) close() {
	for _, s := range m.steps {
		if s.at.Leaf != nil {
			_ = s.at.Leaf.Close()
		}
	}
	for _, dir := range m.targets {
		_ = dir.Close()
	}
}

// plan finds the steps, and makes what was unpacked ready for them.
func (m *merge) plan(ctx context.Context, rel string) (err error) {
	place, err := m.root.Locate(rel, inside.Mode{Follow: true, Missing: true})
	if err != nil {
		return err
	}
	if place.Exists() {
		err = m.onto(ctx, place)
	} else {
		err = m.whole(place)
	}
	if err != nil {
		return inside.Fault(m.name, err)
	}
	if m.later, err = m.unpacker.finish(); err != nil {
		return inside.Fault(m.name, err)
	}
	return nil
}

// whole puts all of it at once. Directories above it that are missing are made.
func (m *merge) whole(place *inside.Place) error {
	m.targets = append(m.targets, place.Dir)
	m.unpacker.result.Directories += len(place.Missing) + 1
	return m.put(m.unpacker.base, treeName, unix.S_IFDIR, place)
}

// put takes something that was unpacked aside, for a step that puts it.
func (m *merge) put(from *os.File, name string, kind uint32, at *inside.Place) error {
	if len(m.steps) == mostPut {
		return bad("it brings more than %d names to directories that are there in %q; unpack it to a new directory", mostPut, m.name)
	}
	s := step{staged: fmt.Sprintf("put%d", len(m.steps)), at: at, over: m.overwrite && kind != unix.S_IFDIR}
	m.steps = append(m.steps, s)
	return m.unpacker.moveAside(from, name, kind, s.staged)
}

// onto puts it over a directory that is there.
func (m *merge) onto(ctx context.Context, place *inside.Place) error {
	defer place.Close()
	target, err := place.OpenDirectory(m.name)
	if err != nil {
		return err
	}
	m.targets = append(m.targets, target)
	top, err := openDirectory(m.unpacker.base, treeName)
	if err != nil {
		return err
	}
	return m.into(ctx, top, target, m.name)
}

// into puts what is in a directory that was unpacked into one that is there. It takes
// the first over.
func (m *merge) into(ctx context.Context, unpacked, target *os.File, path string) error {
	defer unpacked.Close()
	n, err := m.unpacker.number(unpacked)
	if err != nil {
		return err
	}
	m.unpacker.directories[n].merged = true
	names, err := unpacked.Readdirnames(-1)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.one(ctx, unpacked, target, name, path); err != nil {
			return inside.Fault(join(path, name), err)
		}
	}
	return nil
}

// one puts one name: whole, or where both are directories what is in it.
func (m *merge) one(ctx context.Context, unpacked, target *os.File, name, path string) error {
	var own unix.Stat_t
	if err := unix.Fstatat(int(unpacked.Fd()), name, &own, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	kind := own.Mode & unix.S_IFMT
	leaf, err := open(target, name, unix.O_PATH, 0)
	if errors.Is(err, unix.ENOENT) {
		return m.put(unpacked, name, kind, place(target, name, path))
	}
	if err != nil {
		return err
	}
	defer leaf.Close()
	there, err := stat(leaf)
	if err != nil {
		return err
	}
	isDirectory := there.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case isDirectory && kind == unix.S_IFDIR:
		return m.deeper(ctx, unpacked, target, name, path)
	case isDirectory || kind == unix.S_IFDIR || !m.overwrite:
		return unix.EEXIST
	}
	if m.over++; m.over > mostMerged {
		return m.tooMany()
	}
	return m.put(unpacked, name, kind, place(target, name, path))
}

func place(dir *os.File, name, path string) *inside.Place {
	return &inside.Place{Path: join(path, name), Dir: dir, Name: name}
}

func (m *merge) deeper(ctx context.Context, unpacked, target *os.File, name, path string) error {
	if len(m.targets) == mostMerged {
		return m.tooMany()
	}
	below, err := openDirectory(target, name)
	if err != nil {
		return err
	}
	m.targets = append(m.targets, below)
	from, err := openDirectory(unpacked, name)
	if err != nil {
		return err
	}
	return m.into(ctx, from, below, join(path, name))
}

func (m *merge) tooMany() error {
	return bad("more than %d directories that are there in %q would get something from it, or as many files be replaced; unpack it to a new directory", mostMerged, m.name)
}

// commit makes the steps, all or none, and then gives those directories their modes
// that could not have them before.
func (m *merge) commit(ctx context.Context, txn *files.Txn) error {
	if err := files.Again(func() error { return m.try(ctx, txn) }); err != nil {
		return err
	}
	// All is there now, and to say that it failed would be wrong.
	_ = m.root.As(func() error {
		for _, s := range m.steps {
			if mode, ok := m.later[s.staged]; ok {
				m.protect(s.at, mode)
			}
		}
		return nil
	})
	return nil
}

func (m *merge) try(ctx context.Context, txn *files.Txn) error {
	places := make([]*inside.Place, len(m.steps))
	for i, s := range m.steps {
		places[i] = s.at
	}
	unlock, err := m.tree.Lock(ctx, places...)
	if err != nil {
		return err
	}
	defer unlock()
	for _, s := range m.steps {
		txn.Put(s.staged, s.at, s.over)
	}
	return txn.Commit(ctx)
}

// protect takes the right to write from a directory that was put, if it is still
// there: what has come in its place meanwhile is another.
func (m *merge) protect(at *inside.Place, mode uint32) {
	dir, err := openDirectory(at.Dir, strings.Join(append(slices.Clone(at.Missing), at.Name), "/"))
	if err != nil {
		return
	}
	defer dir.Close()
	if _, err := m.unpacker.number(dir); err == nil {
		_ = errors.Join(unix.Fchmod(int(dir.Fd()), mode), dir.Sync())
	}
}
