package core_test

import (
	"context"
	"errors"
	"maps"
	"slices"

	"envapi/core"
)

// fakeArchives are the archives of fakeFolders, whose mutex guards them. What a folder
// holds is one word.
type fakeArchives struct {
	words    map[string]string // by folder
	archives map[string]string // by archive: what it holds
	// unpacks, by environment, and packs that were begun.
	unpacks map[string]int
	packs   int
	most    core.DiskUse // that the last copy could have
	// What each kind of step does before it begins: see on.
	at map[string]func(context.Context) error
}

func newArchives() fakeArchives {
	return fakeArchives{
		words: map[string]string{}, archives: map[string]string{}, unpacks: map[string]int{},
		at: map[string]func(context.Context) error{},
	}
}

// before does what a test wants to happen before a step.
func (f *fakeFolders) before(ctx context.Context, step string) error {
	f.mu.Lock()
	do, err := f.at[step], f.fail
	f.mu.Unlock()
	if do != nil {
		return do(ctx)
	}
	return err
}

// on has something happen before a step; nil is nothing.
func (f *fakeFolders) on(step string, do func(context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at[step] = do
}

// failOnce has the next step of a kind fail.
func (f *fakeFolders) failOnce(step string) {
	f.on(step, func(context.Context) error {
		f.on(step, nil)
		return errDisk
	})
}

func (f *fakeFolders) Pack(ctx context.Context, id string, _ int) (core.Archive, error) {
	f.mu.Lock()
	f.packs++
	f.mu.Unlock()
	if err := f.before(ctx, "pack"); err != nil {
		return core.Archive{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.folders[id]; !ok {
		return core.Archive{}, errors.New("there is no folder to pack")
	}
	f.archives[id] = f.words[id]
	return core.Archive{Bytes: 100, Content: core.DiskUse{Bytes: 8192, Files: 7}}, nil
}

func (f *fakeFolders) Unpack(ctx context.Context, id string, uid int) error {
	f.mu.Lock()
	f.unpacks[id]++
	f.mu.Unlock()
	if err := f.before(ctx, "unpack"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	word, ok := f.archives[id]
	if !ok {
		return errors.New("there is no archive to lay out")
	}
	f.folders[id], f.words[id] = uid, word
	return nil
}

func (f *fakeFolders) Vacate(ctx context.Context, id string) error {
	if err := f.before(ctx, "vacate"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.folders, id)
	delete(f.words, id)
	return nil
}

func (f *fakeFolders) DropArchive(ctx context.Context, id string) error {
	if err := f.before(ctx, "drop"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.archives, id)
	return nil
}

func (f *fakeFolders) Copy(ctx context.Context, from, to string, uid int, most core.DiskUse) error {
	if err := f.before(ctx, "copy"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.folders[from]; !ok {
		return errors.New("there is no folder to copy")
	}
	f.folders[to], f.words[to], f.most = uid, f.words[from], most
	return nil
}

func (f *fakeFolders) ArchiveIDs() ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.archives)), nil
}

// put has a folder hold a word, and word gives it, or that of the archive.
func (f *fakeFolders) put(id, word string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.words[id] = word
}

func (f *fakeFolders) word(id string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.words[id]
}

func (f *fakeFolders) archived(id string) (word string, there bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	word, there = f.archives[id]
	return word, there
}

func (f *fakeFolders) unpacked(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unpacks[id]
}

// begun gives how many packs were begun.
func (f *fakeFolders) begun() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.packs
}

func (f *fakeFolders) uidOf(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.folders[id]
}
