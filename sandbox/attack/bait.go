package attack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// variable is the environment variable by which attacks know their targets.
const variable = "ENVAPI_ATTACK_TARGETS"

// Targets are what attacks are after: things of the host's that would be open
// to them but for the box.
type Targets struct {
	PID       int    `json:"pid"`       // the service's
	Secret    string `json:"secret"`    // a file of the service's
	Folder    string `json:"folder"`    // a folder of the service's, for what attacks would make
	Socket    string `json:"socket"`    // a unix socket that listens, open to all
	Abstract  string `json:"abstract"`  // an abstract unix socket that listens
	TCP       int    `json:"tcp"`       // a port of loopback that listens
	UDP       int    `json:"udp"`       // likewise
	Memory    int    `json:"memory"`    // a System V shared memory segment, open to all
	Queue     int    `json:"queue"`     // a System V message queue, open to all
	Semaphore int    `json:"semaphore"` // a System V semaphore, open to all
	Posix     string `json:"posix"`     // a POSIX message queue, open to all
	Network   string `json:"network"`   // the host's network namespace
	Mount     string `json:"mount"`     // the host's mount namespace
	Owner     int    `json:"owner"`     // the service's uid
}

func (t *Targets) encode() string {
	data, _ := json.Marshal(t) //nolint:errchkjson,gosec // strings and numbers; the secret is a path
	return string(data)
}

func readTargets(encoded string) *Targets {
	var t Targets
	_ = json.Unmarshal([]byte(encoded), &t) // an attacker without targets tries what needs none
	return &t
}

// secret is what the service's file holds.
const secret = "envapi-secret\n" //nolint:gosec // it opens nothing

// Bait holds the targets open.
type Bait struct {
	targets  Targets
	memory   []byte
	closers  []func() error
	stream   *net.UnixListener
	abstract *net.UnixListener
	tcp      *net.TCPListener
	udp      *net.UDPConn
}

// Targets gives what was laid.
func (b *Bait) Targets() Targets { return b.targets }

// Lay makes the targets, with files in a folder of the caller's own outside of
// every workspace.
func Lay(folder string) (*Bait, error) {
	b := newBait(folder)
	for _, step := range b.steps() {
		if err := step(); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot lay the bait: %w", err), b.Close())
		}
	}
	return b, nil
}

func newBait(folder string) *Bait {
	return &Bait{targets: Targets{PID: os.Getpid(), Owner: os.Getuid(), Folder: folder, Secret: filepath.Join(folder, "secret")}}
}

func (b *Bait) steps() []func() error {
	return []func() error{b.layFiles, b.layUnix, b.layLoopback, b.layMemory, b.layQueues}
}

// layInside is what Main does for the argument "lay FOLDER": in a box it lays
// what the box may have, says it in one line, and keeps it until it is killed:
// it is the box's own, and goes with it. Told reads that line.
func layInside(folder string, stdout io.Writer) int {
	b := newBait(folder)
	for _, step := range b.steps() {
		_ = step() // what a box refuses cannot be attacked from another
	}
	fmt.Fprintln(stdout, b.targets.encode())
	for {
		_, _ = unix.Poll(nil, -1)
	}
}

// Told gives the targets that an attacker has laid in another box, which said
// this line.
func Told(line string) *Bait { return &Bait{targets: *readTargets(line)} }

func (b *Bait) layFiles() (err error) {
	if b.targets.Network, err = os.Readlink("/proc/self/ns/net"); err != nil {
		return err
	}
	if b.targets.Mount, err = os.Readlink("/proc/self/ns/mnt"); err != nil {
		return err
	}
	b.closers = append(b.closers, func() error { return os.Remove(b.targets.Secret) })
	return os.WriteFile(b.targets.Secret, []byte(secret), 0o600)
}

// layUnix listens where everybody may connect, but for the box. The address of a
// socket must be short, so that it is not in the caller's folder.
func (b *Bait) layUnix() (err error) {
	folder, err := os.MkdirTemp("/tmp", "envapi-bait-")
	if err != nil {
		return err
	}
	b.closers = append(b.closers, func() error { return os.Remove(folder) })
	if err := os.Chmod(folder, 0o711); err != nil { //nolint:gosec // as it says
		return err
	}
	b.targets.Socket = filepath.Join(folder, "socket")
	if b.stream, err = net.ListenUnix("unix", &net.UnixAddr{Name: b.targets.Socket}); err != nil {
		return err
	}
	b.closers = append(b.closers, b.stream.Close)
	if err := os.Chmod(b.targets.Socket, 0o777); err != nil { //nolint:gosec // open to all: only the box shall refuse
		return err
	}
	b.targets.Abstract = "@envapi-bait-" + strconv.Itoa(b.targets.PID) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	b.abstract, err = net.ListenUnix("unix", &net.UnixAddr{Name: b.targets.Abstract})
	if err == nil {
		b.closers = append(b.closers, b.abstract.Close)
	}
	return err
}

func (b *Bait) layLoopback() (err error) {
	loopback := net.IPv4(127, 0, 0, 1)
	if b.tcp, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: loopback}); err != nil {
		return err
	}
	b.closers = append(b.closers, b.tcp.Close)
	if b.udp, err = net.ListenUDP("udp4", &net.UDPAddr{IP: loopback}); err != nil {
		return err
	}
	b.closers = append(b.closers, b.udp.Close)
	b.targets.TCP = b.tcp.Addr().(*net.TCPAddr).Port      //nolint:forcetypeassert // it was made so
	b.targets.UDP = b.udp.LocalAddr().(*net.UDPAddr).Port //nolint:forcetypeassert // it was made so
	return nil
}

// memoryBytes is the length of the shared memory segment.
const memoryBytes = 4096

func (b *Bait) layMemory() (err error) {
	if b.targets.Memory, err = unix.SysvShmGet(unix.IPC_PRIVATE, memoryBytes, unix.IPC_CREAT|0o666); err != nil {
		return err
	}
	b.closers = append(b.closers, func() error {
		_, err := unix.SysvShmCtl(b.targets.Memory, unix.IPC_RMID, nil)
		return err
	})
	if b.memory, err = unix.SysvShmAttach(b.targets.Memory, 0, 0); err != nil {
		return err
	}
	b.closers = append(b.closers, func() error { return unix.SysvShmDetach(b.memory) })
	copy(b.memory, secret)
	return nil
}

func (b *Bait) layQueues() error {
	queue, _, errno := unix.Syscall(unix.SYS_MSGGET, unix.IPC_PRIVATE, unix.IPC_CREAT|0o666, 0)
	if errno != 0 {
		return os.NewSyscallError("msgget", errno)
	}
	b.targets.Queue = int(queue)
	b.closers = append(b.closers, remover(unix.SYS_MSGCTL, queue, unix.IPC_RMID, 0))
	semaphore, _, errno := unix.Syscall(unix.SYS_SEMGET, unix.IPC_PRIVATE, 1, unix.IPC_CREAT|0o666)
	if errno != 0 {
		return os.NewSyscallError("semget", errno)
	}
	b.targets.Semaphore = int(semaphore)
	b.closers = append(b.closers, remover(unix.SYS_SEMCTL, semaphore, 0, unix.IPC_RMID))
	return b.layPosix()
}

func (b *Bait) layPosix() error {
	name := "envapi-bait-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	path, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(path)), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o666, 0, 0, 0)
	if errno != 0 {
		return nil //nolint:nilerr // a kernel without them has nothing to attack
	}
	b.targets.Posix = name
	b.closers = append(b.closers, func() error {
		_, _, errno := unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(path)), 0, 0)
		return errors.Join(unix.Close(int(fd)), failure("mq_unlink", errno))
	})
	return nil
}

func remover(call, a, b, c uintptr) func() error {
	return func() error {
		_, _, errno := unix.Syscall(call, a, b, c)
		return failure("an ipc object's removal", errno)
	}
}

func failure(what string, errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return os.NewSyscallError(what, errno)
}

// touchPatience is how long Touched looks for each kind of visitor: one that
// came is there at once.
const touchPatience = 20 * time.Millisecond

// Touched says what the attacks left on the outside.
func (b *Bait) Touched() error {
	soon := func() time.Time { return time.Now().Add(touchPatience) }
	var found []error
	for name, accept := range map[string]func() error{
		"the unix socket":     func() error { _ = b.stream.SetDeadline(soon()); c, err := b.stream.Accept(); return closed(c, err) },
		"the abstract socket": func() error { _ = b.abstract.SetDeadline(soon()); c, err := b.abstract.Accept(); return closed(c, err) },
		"the tcp port":        func() error { _ = b.tcp.SetDeadline(soon()); c, err := b.tcp.Accept(); return closed(c, err) },
		"the udp port": func() error {
			_ = b.udp.SetDeadline(soon())
			_, err := b.udp.Read(make([]byte, 1))
			return err
		},
	} {
		if err := accept(); err == nil {
			found = append(found, errors.New(name+" was reached"))
		}
	}
	if !bytes.HasPrefix(b.memory, []byte(secret)) {
		found = append(found, errors.New("the shared memory was written"))
	}
	if data, err := os.ReadFile(b.targets.Secret); err != nil || string(data) != secret {
		found = append(found, fmt.Errorf("the secret was changed: %q, %v", data, err)) //nolint:errorlint // which can be nil
	}
	return errors.Join(found...)
}

func closed(c net.Conn, err error) error {
	if err == nil {
		_ = c.Close()
	}
	return err
}

// Close removes the targets.
func (b *Bait) Close() error {
	var failed []error
	for i := len(b.closers) - 1; i >= 0; i-- {
		failed = append(failed, b.closers[i]())
	}
	b.closers = nil
	return errors.Join(failed...)
}
