package attack

import "golang.org/x/sys/unix"

// mountCalls are attacks that change what is mounted, or the root.
func mountCalls() []plain {
	return []plain{
		{"tmpfs", "D5", "to mount a tmpfs over /tmp", unix.SYS_MOUNT, [6]uintptr{text("x"), text("/tmp"), text("tmpfs"), 0, 0}, ""},
		{"proc", "D5, CVE-2025-31133, CVE-2023-27561", "to mount a fresh /proc", unix.SYS_MOUNT, [6]uintptr{text("x"), text("/tmp"), text("proc"), 0, 0}, ""},
		{"cgroup", "D8, CVE-2022-0492", "to mount a cgroup hierarchy, for its release_agent", unix.SYS_MOUNT, [6]uintptr{text("x"), text("/tmp"), text("cgroup"), 0, text("rdma")}, ""},
		{"overlay", "CVE-2021-3493, CVE-2023-0386", "to mount an overlay", unix.SYS_MOUNT, [6]uintptr{text("x"), text("/tmp"), text("overlay"), 0, text("lowerdir=/usr:/bin")}, ""},
		{"bind", "D5", "to bind /usr over /tmp", unix.SYS_MOUNT, [6]uintptr{text("/usr"), text("/tmp"), 0, unix.MS_BIND, 0}, ""},
		{"remount", "D5", "to make /usr writable", unix.SYS_MOUNT, [6]uintptr{0, text("/usr"), 0, unix.MS_REMOUNT | unix.MS_BIND, 0}, ""},
		{"propagation", "D5", "to have mounts propagate", unix.SYS_MOUNT, [6]uintptr{0, text("/"), 0, unix.MS_SHARED | unix.MS_REC, 0}, ""},
		{"umount", "D5", "to uncover what a mount hides", unix.SYS_UMOUNT2, [6]uintptr{text("/proc"), unix.MNT_DETACH}, ""},
		{"pivot_root", "D5", "to change the root of all", unix.SYS_PIVOT_ROOT, [6]uintptr{text("/"), text("/tmp")}, ""},
		{"chroot", "D5, CVE-2025-32463", "to change its own root, the classical way out of one", unix.SYS_CHROOT, [6]uintptr{text("/tmp")}, ""},
		{"fsopen", "D5, CVE-2022-0185", "to make a file system by the new calls", unix.SYS_FSOPEN, [6]uintptr{text("tmpfs"), 0}, ""},
		{"fspick", "D5", "to reconfigure a file system", unix.SYS_FSPICK, [6]uintptr{workingDirectory, text("/"), 0}, ""},
		{"fsconfig", "D5", "to configure a file system", unix.SYS_FSCONFIG, [6]uintptr{none, 0, 0, 0, 0}, ""},
		{"fsmount", "D5", "to mount what was made", unix.SYS_FSMOUNT, [6]uintptr{none, 0, 0}, ""},
		{"open_tree", "D5, CVE-2025-52881's kind", "to clone a tree of mounts", unix.SYS_OPEN_TREE, [6]uintptr{workingDirectory, text("/"), unix.OPEN_TREE_CLONE}, ""},
		{"move_mount", "D5", "to move a mount", unix.SYS_MOVE_MOUNT, [6]uintptr{workingDirectory, text("/proc"), workingDirectory, text("/tmp"), 0}, ""},
		{"mount_setattr", "D5", "to make a mount writable", unix.SYS_MOUNT_SETATTR, [6]uintptr{workingDirectory, text("/"), 0, address(64), 32}, ""},
		{"statmount", "D5", "to learn of mounts", statmount, [6]uintptr{address(0), address(64), 512, 0}, "ENOSYS"},
		{"listmount", "D5", "to list mounts that are not its own", listmount, [6]uintptr{address(0), address(64), 8, 0}, "ENOSYS"},
	}
}

// The numbers of calls that the library does not name on every architecture.
const statmount, listmount = 457, 458

func mountRows() []Row { return plainRows("mount-", mountCalls()) }
