// Package cgroup bounds what the processes of a box use together, and counts
// what a command uses, by control groups of Linux: version 2 where it is
// delegated to the service, else the hierarchies of version 1, each controller
// for itself.
//
//	the service's own group
//	├── envapi-service              version 2 only: the service, its inits and reapers
//	└── envapi-NAME                 Parent: what this service makes
//	    ├── a0                      an account, to be weighed against the others
//	    │   ├── b0                  Group: a box, with its limits
//	    │   │   ├── c0              Slot: a command, for counting
//	    │   │   │   └── tasks       version 2 only: its processes, for their number
//	    │   │   └── c1 …
//	    │   └── b1 …
//	    └── a1 …
//
// The leader of a command enters its slot before it executes anything, and all
// that descends from it is born there. The init of a box and its reapers stay
// with the service: neither want of memory nor of processes may hit them.
//
// The kernel gives every account the same share of the processors that are wanted,
// and every box the same of its account's: that is what groups of one level have
// where nobody says otherwise. An account's group is nobody's when its last box is
// gone, and another account's afterwards.
//
// Groups and slots are used again, since a removed memory group lives on in the
// kernel as long as a page of its is left. What a slot says is therefore always
// a difference to what it said when it was taken. Only the part of a slot that
// counts processes is made anew, where a command had more than one: the kernel
// tells the most that there ever were, and forgets a removed group of that kind.
//
// Not protected: cgroups bound no disk and no network. A process that the
// kernel cannot end, on a file system that does not answer, keeps its group.
// Version 2 was tried against a made-up file tree only.
package cgroup
