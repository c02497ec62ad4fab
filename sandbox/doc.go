// Package sandbox contains commands. This file is the threat model; the rest
// of the package is the interface that core uses, and its folders are the
// tiers and their parts.
//
// # Who attacks, and what
//
// The attacker is a command: any program that a caller runs, which is taken to
// want out. What it must not reach: the service's memory, files, tokens and
// descriptors; other environments' files, processes and network; the host's
// files beyond the system's programs, its processes, its kernel's
// configuration, and the network. What it may do as it likes: everything
// within its own environment, up to the limits.
//
// # What stands between
//
//	supervisor ── stream socket, strict frames ── init ── reaper ── command
//	(package supervisor)    (package protocol)   (package boxinit)
//
// The supervisor is the service. It executes nothing but the init's sealed
// program, and it takes no byte from a box for more than it is: output is
// output, and a report of an init concerns that init's own commands or ends
// the box. The init locks itself down before anything of the caller runs, and
// checks what it did; all commands inherit it. The reaper keeps each command's
// processes together, so that all of them can be ended.
//
// A tier (packages namespace, user and directory) is what the init is told to make
// of itself. Package host tries the tiers at the start and takes the strongest
// that works; its report says control by control what holds, and what does
// not.
//
// # Not protected
//
// Bugs of the kernel in the calls that package seccomp allows; side channels; the
// folder's size, which is not bounded here; memory and cpu where the host has no
// cgroup to give; and a caller's own commands from each other: they share an
// environment, and can kill, trace and deceive one another.
package sandbox
