package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
)

// The time between two looks for room, which grows as there is none. The kernel
// tells when a pipe has some; of a terminal it tells when its reader has read, and
// only then makes the room.
const (
	shortestWait = time.Millisecond
	longestWait  = 25 * time.Millisecond
)

// pour writes to a file that does not block as there is room, and at least once:
// until ctx ends, or over says that nobody is to read it any more. It gives how
// many bytes were taken.
func pour(ctx context.Context, to *os.File, p []byte, over func() bool) (int, error) {
	if ctx.Err() == nil {
		defer context.AfterFunc(ctx, func() { wake(to) })()
	}
	pause := shortestWait
	for taken := 0; ; pause = min(2*pause, longestWait) {
		_ = to.SetWriteDeadline(time.Now().Add(pause))
		if over() {
			return taken, sandbox.ErrInputClosed
		}
		n, err := to.Write(p[taken:])
		if taken += n; n > 0 {
			pause = shortestWait / 2
		}
		switch {
		case err == nil:
			return taken, nil
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EIO), errors.Is(err, os.ErrClosed):
			return taken, sandbox.ErrInputClosed
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return taken, fmt.Errorf("cannot write the input: %w", err)
		case ctx.Err() != nil:
			return taken, ctx.Err()
		}
	}
}

// wake lets pour look whether it is to go on.
func wake(to *os.File) { _ = to.SetWriteDeadline(time.Unix(1, 0)) }
