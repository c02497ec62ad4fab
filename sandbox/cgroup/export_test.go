package cgroup

import (
	"log/slog"
	"path/filepath"
)

// Fake is a file tree that stands for the kernel's: Proc has mountinfo and cgroup.
type Fake struct {
	Proc         string
	Mkdir, Rmdir func(path string) error
	Write        func(path, value string) error
}

// OpenFake opens groups in a Fake.
func OpenFake(f Fake, name string) *Parent {
	return open(Options{Name: name, Log: slog.New(slog.DiscardHandler)}, system{
		mountinfo: filepath.Join(f.Proc, "mountinfo"), cgroup: filepath.Join(f.Proc, "cgroup"),
		mkdir: f.Mkdir, rmdir: f.Rmdir, write: f.Write,
	})
}

// EmptyV2 empties a group of version 2.
func EmptyV2(folder string) error {
	return (&hierarchy{system: hostSystem, version: 2}).empty(folder)
}

// Free says how many slots of a group can be taken at once.
func Free(g *Group) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.free)
}

// MaxIdle, MaxFree, MaxKept and MaxSpare bound what is kept.
const (
	MaxIdle  = maxIdle
	MaxFree  = maxFree
	MaxKept  = maxKept
	MaxSpare = maxSpare
)
