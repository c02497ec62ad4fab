package namespace

import (
	"os"
	"path/filepath"
	"slices"

	"envapi/sandbox/hostfiles"
	"envapi/sandbox/protocol"
	"envapi/sandbox/supervisor"
)

// Bounds of the file systems that are a box's own and vanish with it.
const (
	tmpBytes   = 512 << 20
	tmpInodes  = 128 << 10
	shmBytes   = 64 << 20
	shmInodes  = 16 << 10
	frameBytes = 16 << 20 // scripts of at most 1 MiB, of shells that run something
	frameNodes = 4 << 10
	userName   = "user"
	passwdFile = "root:x:0:0:root:/root:/usr/sbin/nologin\n" +
		userName + ":x:1000:1000::" + WorkspacePath + ":/bin/bash\n" +
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
	groupFile = "root:x:0:\n" + userName + ":x:1000:\nnogroup:x:65534:\n"
	hostsFile = "127.0.0.1 localhost envapi\n::1 localhost envapi\n"
)

// fileTree gives the entries that are the same for every box.
func fileTree(rootfs string) []protocol.Entry {
	var tree []protocol.Entry
	for _, folder := range hostfiles.Folders {
		tree = append(tree, systemFolder(rootfs, folder)...)
	}
	tree = append(tree, etc(rootfs)...)
	tree = append(tree, dev()...)
	return append(tree,
		protocol.Entry{Kind: protocol.EntryProc, Target: "/proc", Writable: true, NoExec: true},
		protocol.Entry{Kind: protocol.EntryTmpfs, Target: "/tmp", Writable: true, Mode: 0o1777, Bytes: tmpBytes, Inodes: tmpInodes},
		protocol.Entry{Kind: protocol.EntryDir, Target: "/var", Mode: 0o755},
		protocol.Entry{Kind: protocol.EntryLink, Target: "/var/tmp", Source: "/tmp"},
		protocol.Entry{Kind: protocol.EntryDir, Target: "/run", Mode: 0o755},
		protocol.Entry{
			Kind: protocol.EntryTmpfs, Target: supervisor.FramesPath, Writable: true, NoExec: true, Mode: 0o700,
			Bytes: frameBytes, Inodes: frameNodes,
		},
	)
}

// bounded gives the tree with file systems in memory that leave room for programs:
// what is in them counts as memory until it is removed, and removing takes a
// program.
func bounded(tree []protocol.Entry, memory int64) []protocol.Entry {
	tree = slices.Clone(tree)
	for i := range tree {
		e := &tree[i]
		if e.Kind == protocol.EntryTmpfs && memory > 0 {
			e.Bytes = min(e.Bytes, memory/(2*tmpBytes/e.Bytes))
		}
	}
	return tree
}

// systemFolder gives a folder, or a link where the host has a link (a merged
// /usr).
func systemFolder(rootfs, folder string) []protocol.Entry {
	source := filepath.Join("/", rootfs, folder)
	if target, err := os.Readlink(source); err == nil {
		return []protocol.Entry{{Kind: protocol.EntryLink, Target: folder, Source: target}}
	}
	return []protocol.Entry{{Kind: protocol.EntryBind, Target: folder, Source: source, Optional: true}}
}

// etc gives /etc. Files that are links are resolved here, since what they
// point to may not be in the box.
func etc(rootfs string) []protocol.Entry {
	entries := []protocol.Entry{
		{Kind: protocol.EntryDir, Target: "/etc", Mode: 0o755},
		{Kind: protocol.EntryFile, Target: "/etc/passwd", Source: passwdFile, Mode: 0o644},
		{Kind: protocol.EntryFile, Target: "/etc/group", Source: groupFile, Mode: 0o644},
		{Kind: protocol.EntryFile, Target: "/etc/hosts", Source: hostsFile, Mode: 0o644},
		{Kind: protocol.EntryFile, Target: "/etc/hostname", Source: "envapi\n", Mode: 0o644},
		{Kind: protocol.EntryLink, Target: "/etc/mtab", Source: "/proc/self/mounts"},
	}
	for _, name := range hostfiles.Etc {
		source, err := filepath.EvalSymlinks(filepath.Join("/", rootfs, "etc", name))
		if err != nil {
			continue // the host has none
		}
		entries = append(entries, protocol.Entry{Kind: protocol.EntryBind, Target: "/etc/" + name, Source: source, Optional: true})
	}
	return entries
}

func dev() []protocol.Entry {
	entries := []protocol.Entry{
		{Kind: protocol.EntryDir, Target: "/dev", Mode: 0o755},
		{Kind: protocol.EntryDevpts, Target: "/dev/pts", Writable: true, Device: true, NoExec: true},
		{Kind: protocol.EntryTmpfs, Target: "/dev/shm", Writable: true, NoExec: true, Mode: 0o1777, Bytes: shmBytes, Inodes: shmInodes},
		{Kind: protocol.EntryLink, Target: "/dev/ptmx", Source: "pts/ptmx"},
		{Kind: protocol.EntryLink, Target: "/dev/fd", Source: "/proc/self/fd"},
		{Kind: protocol.EntryLink, Target: "/dev/stdin", Source: "/proc/self/fd/0"},
		{Kind: protocol.EntryLink, Target: "/dev/stdout", Source: "/proc/self/fd/1"},
		{Kind: protocol.EntryLink, Target: "/dev/stderr", Source: "/proc/self/fd/2"},
	}
	for _, name := range hostfiles.Devices {
		entries = append(entries, protocol.Entry{
			Kind: protocol.EntryBind, Target: "/dev/" + name, Source: "/dev/" + name, Writable: true, Device: true, NoExec: true,
		})
	}
	return entries
}
