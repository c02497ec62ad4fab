package datalock

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// uidsFile has one byte for each host uid, of which none is ever written: the
// kernel locks parts of a file, whatever its length.
const uidsFile = "/run/envapi-uids.lock"

// UIDs are host uids from First up to, not including, End.
type UIDs struct{ First, End int }

// UIDsHeldError says that another service has some of the host uids.
type UIDsHeldError struct{ UIDs UIDs }

func (e *UIDsHeldError) Error() string {
	return fmt.Sprintf("cannot use the host uids %d to %d: another service on this host has some of them, and one would end the commands of the other: stop that one, or set ENVAPI_UID_RANGE to uids of this one's own", e.UIDs.First, e.UIDs.End-1)
}

// AcquireUIDs takes host uids for this service alone. Where another one has any
// of them, it fails with *UIDsHeldError at once.
func AcquireUIDs(uids ...UIDs) (io.Closer, error) { return acquireUIDs(uidsFile, uids) }

func acquireUIDs(file string, uids []UIDs) (io.Closer, error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock of the host's uids, which a service that is root has in /run: %w", err)
	}
	for _, u := range uids {
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(u.First), Len: int64(u.End - u.First)}
		err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			err = &UIDsHeldError{u}
		} else if err != nil {
			err = fmt.Errorf("cannot lock host uids: %w", err)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}
