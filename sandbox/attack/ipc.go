package attack

import (
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ipcRows are attacks on the host's ways of talking, which would be open to
// everybody but for the box.
func ipcRows() []Row {
	// Without an ipc namespace the filter refuses all of it.
	noIPC := func(inNamespace string) Expect { return Expect{"refused EPERM", "refused EPERM", inNamespace, 0} }
	return []Row{
		{ID: "abstract", Stands: "D9, CVE-2020-15257 of containerd", Tries: "to connect to an abstract socket of the host's", Expect: Expect{"refused EPERM", "refused EPERM", "refused ECONNREFUSED", 0}, run: func(t *Targets) string {
			return reach(unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: t.Abstract})
		}},
		{ID: "unix-path", Stands: "D9, docker.sock", Tries: "to connect to a socket file of the host's", Expect: Expect{"refused EPERM", "refused EPERM", "refused ENOENT", 0}, run: func(t *Targets) string {
			return reach(unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: t.Socket})
		}},
		{ID: "unix-datagram", Stands: "D9, the log's socket", Tries: "to send to the system's log", Expect: Expect{"refused EPERM", "refused EPERM", "refused ENOENT", 0}, run: func(*Targets) string {
			return reach(unix.AF_UNIX, unix.SOCK_DGRAM, &unix.SockaddrUnix{Name: "/dev/log"})
		}},
		{ID: "shared-memory", Stands: "D9", Tries: "to attach a System V segment of the host's", Expect: noIPC("refused EINVAL"), run: attachMemory},
		{ID: "message-queue", Stands: "D9", Tries: "to write to a System V queue of the host's", Expect: noIPC("refused EINVAL"), run: sendMessage},
		{ID: "semaphore", Stands: "D9", Tries: "to change a System V semaphore of the host's", Expect: noIPC("refused EINVAL"), run: setSemaphore},
		{ID: "posix-queue", Stands: "D9", Tries: "to open a POSIX queue of the host's", Expect: noIPC("refused ENOENT"), run: openQueue},
		{ID: "shm-folder", Stands: "D9", Tries: "to make a file in the host's /dev/shm", Expect: Expect{Directory: "refused EACCES", User: "refused EACCES", Namespace: "harmless: a /dev/shm of its own", Landlock: 1}, run: useShm},
	}
}

func attachMemory(t *Targets) string {
	data, err := unix.SysvShmAttach(t.Memory, 0, 0)
	if err != nil {
		return refused(err)
	}
	defer func() { _ = unix.SysvShmDetach(data) }()
	if !strings.HasPrefix(string(data), secret) {
		return harmless("a segment of its own")
	}
	return escaped("the host's segment is attached")
}

func sendMessage(t *Targets) string {
	message := struct {
		kind int64
		text [8]byte
	}{kind: 1}
	_, _, errno := unix.Syscall6(unix.SYS_MSGSND, uintptr(t.Queue), uintptr(unsafe.Pointer(&message)), 1, unix.IPC_NOWAIT, 0, 0)
	return tried(failure("msgsnd", errno), "the host's queue has it")
}

func setSemaphore(t *Targets) string {
	_, _, errno := unix.Syscall6(unix.SYS_SEMCTL, uintptr(t.Semaphore), 0, 16, 1, 0, 0) // SETVAL
	return tried(failure("semctl", errno), "the host's semaphore is set")
}

func openQueue(t *Targets) string {
	path, err := unix.BytePtrFromString(t.Posix)
	if err != nil {
		return refused(err)
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(path)), unix.O_RDWR|unix.O_CLOEXEC, 0, 0, 0, 0)
	if errno == 0 {
		_ = unix.Close(int(fd))
	}
	return tried(failure("mq_open", errno), "the host's queue is open")
}

func useShm(t *Targets) string {
	const path = "/dev/shm/envapi-attack"
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return refused(err)
	}
	_ = unix.Close(fd)
	_ = unix.Unlink(path)
	if sameNamespace("mnt", t.Mount) {
		return escaped("it is the host's")
	}
	return harmless("a /dev/shm of its own")
}
