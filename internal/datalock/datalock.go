// Package datalock keeps two services off one data folder, and off the same host
// uids.
//
// The lock is the kernel's (flock on DATA/envapi.lock) and ends with the
// process that holds it, however that ends. What the file says about the holder
// is for people only. The file itself stays for good: were it removed, two
// services could each hold a lock on a file of that name. Host uids are locked as
// parts of a file in /run, in the same way.
//
// What it does not protect against: a service on another host that shares the
// folder over a network whose file system does not carry flock; services in
// containers that share the host's processes, but not its /run; and programs that
// do not ask for the lock.
package datalock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const fileName = "envapi.lock"

// maxHolderBytes bounds what is read from the file.
const maxHolderBytes = 4 << 10

// Holder is who holds a lock.
type Holder struct {
	PID     int       `json:"pid"`
	Program string    `json:"program"`
	Started time.Time `json:"started"`
	Address string    `json:"address,omitempty"` // where it listens, once it does
}

// HeldError says that another service has the folder.
type HeldError struct {
	Dir    string
	Holder *Holder // nil where the file does not say
}

func (e *HeldError) Error() string {
	text := fmt.Sprintf("cannot use the data folder %s: ", e.Dir)
	if e.Holder == nil {
		return text + "another service has it: stop that one, or set ENVAPI_DATA_DIR to another folder"
	}
	where := ""
	if e.Holder.Address != "" {
		where = " on " + e.Holder.Address
	}
	return text + fmt.Sprintf("%s (pid %d%s, since %s) has it: use that one, stop it, or set ENVAPI_DATA_DIR to another folder",
		e.Holder.Program, e.Holder.PID, where, e.Holder.Started.Local().Format("2006-01-02 15:04:05"))
}

// Lock is a held lock.
type Lock struct{ file *os.File }

// Acquire takes the lock of a data folder, which must exist, and writes down
// who has it. Where another process has it, it fails with *HeldError at once.
func Acquire(dir string, h Holder) (*Lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, fileName), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock of the data folder: %w", err)
	}
	return take(f, dir, h, true)
}

// AcquireExisting is Acquire for who only looks at a data folder: where there is no lock
// it makes none, and gives nil, since nobody ever served from that folder; where the
// folder is read-only it does not write down who has it.
func AcquireExisting(dir string, h Holder) (*Lock, error) {
	path := filepath.Join(dir, fileName)
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	describe := err == nil
	if errors.Is(err, unix.EROFS) {
		f, err = os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock of the data folder: %w", err)
	}
	return take(f, dir, h, describe)
}

// take takes the lock of an open file.
func take(f *os.File, dir string, h Holder, describe bool) (*Lock, error) {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer func() { _ = f.Close() }()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &HeldError{Dir: dir, Holder: readHolder(f)}
		}
		return nil, fmt.Errorf("cannot lock the data folder: %w", err)
	}
	l := &Lock{file: f}
	if !describe {
		return l, nil
	}
	if err := l.Describe(h); err != nil {
		_ = f.Close()
		return nil, err
	}
	return l, nil
}

// Exists says whether there is a lock in a folder.
func Exists(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, fileName))
	return err == nil
}

// Describe writes down who holds the lock, in the place of what stood there.
func (l *Lock) Describe(h Holder) error {
	text, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("cannot describe the holder of the data folder: %w", err)
	}
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("cannot write the lock of the data folder: %w", err)
	}
	if _, err := l.file.WriteAt(append(text, '\n'), 0); err != nil {
		return fmt.Errorf("cannot write the lock of the data folder: %w", err)
	}
	return nil
}

// Close gives the folder free.
func (l *Lock) Close() error { return l.file.Close() }

// readHolder reads what the holder has written; nil where that is not there,
// or not yet.
func readHolder(f *os.File) *Holder {
	text, err := io.ReadAll(io.LimitReader(f, maxHolderBytes))
	var h Holder
	if err != nil || json.Unmarshal(text, &h) != nil || h.PID == 0 || h.Program == "" {
		return nil
	}
	return &h
}
