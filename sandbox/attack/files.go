package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// open opens a file, which must not be.
func open(path string, flags int) string {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	if err == nil {
		_ = unix.Close(fd)
	}
	return tried(err, path+" is open")
}

// read reads from a file, which must not be: some can be opened and not read.
func read(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return refused(err)
	}
	defer f.Close()
	n, err := f.Read(make([]byte, 64))
	return tried(err, fmt.Sprintf("%d bytes of %s were read", n, path))
}

// write writes to a file that is there, which must not be.
func write(path, what string) string {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return refused(err)
	}
	defer f.Close()
	_, err = f.WriteString(what)
	return tried(err, path+" was written")
}

// outside is what becomes of an attack on a file of the service's: the tiers on
// the host's tree refuse it, and in a tree of the box's own there is no such file.
func outside(directory, user string) Expect { return Expect{directory, user, "refused ENOENT", 1} }

// fileRows are attacks on files that are not the box's.
func fileRows() []Row {
	denied := outside("refused EACCES", "refused EACCES")
	rows := []Row{
		{ID: "secret-read", Stands: "D2, D20, Landlock", Tries: "to read a file of the service's", Expect: denied, run: func(t *Targets) string { return read(t.Secret) }},
		{ID: "secret-write", Stands: "D20, Landlock", Tries: "to open a file of the service's for writing", Expect: denied, run: func(t *Targets) string { return open(t.Secret, unix.O_WRONLY) }},
		{ID: "secret-truncate", Stands: "Landlock before ABI 3", Tries: "to truncate a file of the service's", Expect: denied, run: func(t *Targets) string {
			return tried(unix.Truncate(t.Secret, int64(len(secret))), "it could be truncated")
		}},
		{ID: "secret-link", Stands: "D11, Landlock", Tries: "to link a file of the service's into the workspace", Expect: outside("refused EXDEV | refused EACCES", "refused EPERM | refused EACCES | refused EXDEV"), run: linkSecret},
		{ID: "secret-rename", Stands: "Landlock before ABI 2", Tries: "to move a file of the service's into the workspace", Expect: outside("refused EXDEV | refused EACCES", "refused EACCES | refused EXDEV"), run: renameSecret},
		{ID: "secret-symlink", Stands: "D10, CVE-2021-30465", Tries: "to read a file of the service's through a symbolic link of its own", Expect: denied, run: symlinkSecret},
		{ID: "secret-proc-root", Stands: "Claude Code's /proc/self/root", Tries: "to read a file of the service's through /proc/self/root", Expect: denied, run: func(t *Targets) string { return read("/proc/self/root" + t.Secret) }},
		{ID: "secret-openat", Stands: "CVE-2024-21626", Tries: "to read a file of the service's from the working directory upwards", Expect: denied, run: func(t *Targets) string {
			return read("/proc/self/cwd/../../../../../../../../../../../../.." + t.Secret)
		}},
		{ID: "secret-exec", Stands: "Landlock", Tries: "to execute a file of the service's", Expect: denied, run: func(t *Targets) string {
			_, err := os.StartProcess(t.Secret, []string{"x"}, &os.ProcAttr{})
			return tried(err, "it was executed")
		}},
		{ID: "folder-create", Stands: "D20, Landlock", Tries: "to make a file in a folder of the service's", Expect: denied, run: func(t *Targets) string {
			return open(filepath.Join(t.Folder, "new"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		}},
		{ID: "folder-remove", Stands: "D20, Landlock", Tries: "to remove a folder of the service's", Expect: denied, run: func(t *Targets) string {
			return tried(unix.Rmdir(t.Folder), "it is gone")
		}},
		{ID: "folder-list", Stands: "D20", Tries: "to list a folder of the service's", Expect: denied, run: func(t *Targets) string { return open(t.Folder, unix.O_RDONLY|unix.O_DIRECTORY) }},
		{ID: "folder-socket", Stands: "Landlock", Tries: "to make a socket in a folder of the service's", Expect: denied, run: func(t *Targets) string {
			return tried(unix.Mknod(filepath.Join(t.Folder, "socket"), unix.S_IFSOCK|0o600, 0), "it is made")
		}},
	}
	return append(append(rows, systemFileRows()...), ownFileRows()...)
}

// remove removes what an attack has made in the workspace, which goes in the end.
func remove(path string) { _ = os.Remove(path) }

func linkSecret(t *Targets) string {
	defer remove("stolen")
	return tried(unix.Link(t.Secret, "stolen"), "it is linked")
}

func renameSecret(t *Targets) string {
	err := unix.Rename(t.Secret, "stolen")
	if err == nil {
		err = unix.Rename("stolen", t.Secret)
		return escaped("it was moved, and back: %v", err)
	}
	return refused(err)
}

func symlinkSecret(t *Targets) string {
	if err := unix.Symlink(t.Secret, "way-out"); err != nil {
		return "failed: " + err.Error()
	}
	defer remove("way-out")
	return read("way-out")
}

// systemFileRows are attacks on the system's folders.
func systemFileRows() []Row {
	closed := Expect{"refused EACCES", "refused EACCES", "refused EROFS | refused EACCES", 0}
	var rows []Row
	for _, path := range []string{"/usr/envapi", "/usr/bin/envapi", "/etc/envapi", "/envapi", "/dev/envapi"} {
		rows = append(rows, Row{
			ID: "system" + strings.ReplaceAll(path, "/", "-"), Stands: "the read-only binds", Tries: "to make " + path, Expect: closed,
			run: func(*Targets) string { return open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL) },
		})
	}
	return append(rows,
		Row{ID: "system-shell", Stands: "the read-only binds", Tries: "to overwrite the shell", Expect: Expect{"refused EACCES", "refused EACCES", "refused EROFS | refused EACCES | refused ETXTBSY", 0}, run: func(*Targets) string {
			return open("/bin/bash", unix.O_WRONLY)
		}},
		Row{ID: "self-exe", Stands: "D1, CVE-2019-5736", Tries: "to write to the program that it runs", Expect: everywhere("refused ETXTBSY | refused EACCES"), run: func(*Targets) string {
			return open("/proc/self/exe", unix.O_WRONLY)
		}},
		Row{ID: "home", Stands: "Codex and Claude Code: files of the user", Tries: "to list the home folders of the host", Expect: Expect{"refused EACCES", "refused EACCES", "refused ENOENT", 1}, run: func(*Targets) string {
			return open("/home", unix.O_RDONLY|unix.O_DIRECTORY)
		}},
		Row{ID: "run-sockets", Stands: "docker.sock, D-Bus: Codex, sandbox-runtime, greywall", Tries: "to list the sockets in /run", Expect: Expect{"refused EACCES", "refused EACCES", "harmless: only the box's own is there", 1}, run: func(*Targets) string {
			entries, err := os.ReadDir("/run")
			if err != nil {
				return refused(err)
			}
			for _, e := range entries {
				if e.Name() != "envapi" || !e.IsDir() { // of the box's shells
					return escaped("there is %s", e)
				}
			}
			return harmless("only the box's own is there")
		}},
	)
}

// ownFileRows are attacks that make something of a file of one's own that it
// must not be.
func ownFileRows() []Row {
	return []Row{
		{ID: "mknod", Stands: "D11", Tries: "to make a device node", Expect: everywhere("refused EPERM"), run: func(*Targets) string {
			defer remove("node")
			return tried(unix.Mknod("node", unix.S_IFCHR|0o666, 1<<8|1), "there is one")
		}},
		{ID: "mknod-block", Stands: "D11", Tries: "to make the node of a disk", Expect: everywhere("refused EPERM"), run: func(*Targets) string {
			defer remove("node")
			return tried(unix.Mknod("node", unix.S_IFBLK|0o666, 8<<8), "there is one")
		}},
		{ID: "chown", Stands: "D11", Tries: "to give a file to root", Expect: Expect{"refused EPERM", "refused EPERM", "refused EINVAL | refused EPERM", 0}, run: func(*Targets) string {
			return onOwnFile(func(path string) string { return tried(unix.Chown(path, 0, 0), "it is root's") })
		}},
		{ID: "file-capability", Stands: "D11, CVE-2023-0386", Tries: "to give a file capabilities", Expect: everywhere("refused EPERM"), run: func(*Targets) string {
			return onOwnFile(func(path string) string {
				all := []byte("\x01\x00\x00\x02\xff\xff\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00")
				return tried(unix.Setxattr(path, "security.capability", all, 0), "it has them")
			})
		}},
		{ID: "lease", Stands: "D15", Tries: "to take a lease that holds up whoever opens the file", Expect: everywhere("refused EPERM"), run: func(*Targets) string { return fileControl(unix.F_SETLEASE) }},
		{ID: "lease-high", Stands: "D15", Tries: "to take a lease, with high bits set", Expect: everywhere("refused EPERM"), run: func(*Targets) string { return fileControl(unix.F_SETLEASE | highBits) }},
		{ID: "project", Stands: "D12: project quotas", Tries: "to move a file out of its project", Expect: everywhere("refused EPERM"), run: setProject},
		{ID: "immutable", Stands: "D15", Tries: "to make a file that the service cannot delete", Expect: everywhere("refused EPERM"), run: setImmutable},
		{ID: "device-by-handle", Stands: "nodev", Tries: "to find a device node beyond the harmless ones", Expect: Expect{Namespace: "harmless: none", Directory: "harmless: none", User: "harmless: none", Landlock: 1}, run: findDevices},
	}
}

func onOwnFile(do func(path string) string) string {
	const path = "own-file"
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		return "failed: " + err.Error()
	}
	defer remove(path)
	return do(path)
}

func fileControl(command uintptr) string {
	return onOwnFile(func(path string) string {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return "failed: " + err.Error()
		}
		defer unix.Close(fd)
		return calls{{number: unix.SYS_FCNTL, args: [6]uintptr{uintptr(fd), command, unix.F_RDLCK}}}.verdict("it has one")
	})
}

// extended is struct fsxattr of the kernel.
type extended struct {
	flags, extentSize, extents, project, cowExtentSize uint32
	_                                                  [8]byte
}

const (
	getExtended = 0x801c581f // FS_IOC_FSGETXATTR
	setExtended = 0x401c5820 // FS_IOC_FSSETXATTR
	setFlags    = 0x40086602 // FS_IOC_SETFLAGS
	immutable   = 0x10       // FS_IMMUTABLE_FL
)

func setProject(*Targets) string {
	return onOpenFile(func(fd uintptr) string {
		var x extended
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, getExtended, uintptr(unsafe.Pointer(&x))); errno != 0 {
			x = extended{}
		}
		x.project++
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, setExtended, uintptr(unsafe.Pointer(&x)))
		return tried(failure("ioctl", errno), "it is in another")
	})
}

func setImmutable(*Targets) string {
	return onOpenFile(func(fd uintptr) string {
		flags := int32(immutable)
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, setFlags, uintptr(unsafe.Pointer(&flags)))
		return tried(failure("ioctl", errno), "nobody can delete it")
	})
}

func onOpenFile(do func(fd uintptr) string) string {
	return onOwnFile(func(path string) string {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return "failed: " + err.Error()
		}
		defer f.Close()
		return do(f.Fd())
	})
}

// dangerous are devices that give access to the machine.
var dangerous = []string{"mem", "kmem", "port", "kmsg", "kvm", "fuse", "sda", "vda", "nvme0n1", "loop0", "loop-control", "net/tun", "vhost-net", "uinput", "autofs", "cpu/0/msr", "userfaultfd", "vsock", "mapper/control", "btrfs-control", "snapshot", "hpet", "nvram", "console", "tty0", "vcs"}

func findDevices(*Targets) string {
	for _, name := range dangerous {
		for _, flags := range []int{unix.O_RDONLY, unix.O_WRONLY} {
			fd, err := unix.Open("/dev/"+name, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
			if err == nil {
				_ = unix.Close(fd)
				return escaped("/dev/%s is open", name)
			}
		}
	}
	return harmless("none")
}
