package outputlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// namesAtOnce is how many names of an environment's logs are held.
	namesAtOnce = 256
	// copyTries is how often a log is copied of which a part was dropped meanwhile.
	copyTries = 5
	// copyPiece is how much of a file is copied between two looks at the context.
	copyPiece = 64 << 20
)

// Copy copies the logs of an environment from one folder of logs to another, which has
// none of it, and gives their bytes. The service may write to them, and remove them,
// meanwhile: each is copied as it was at a moment after the beginning. Keep says by the id
// of a command or shell whether its log is wanted.
func Copy(ctx context.Context, from, to, environmentID string, keep func(id string) (bool, error)) (size int64, err error) {
	if !isID(environmentID) {
		return 0, fmt.Errorf("cannot copy output logs: %q is no id", environmentID)
	}
	c := copier{ctx: ctx, from: &Logs{dir: from}, to: &Logs{dir: to}, environment: environmentID}
	dir, err := os.Open(filepath.Join(from, environmentID))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cannot copy output logs: %w", err)
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(namesAtOnce)
		if errors.Is(err, io.EOF) {
			return c.bytes, nil
		}
		if err == nil {
			err = c.logs(names, keep)
		}
		if err != nil {
			return c.bytes, fmt.Errorf("cannot copy output logs: %w", err)
		}
	}
}

// copier copies the logs of an environment.
type copier struct {
	ctx         context.Context //nolint:containedctx // of one call
	from, to    *Logs
	environment string
	bytes       int64
}

// logs copies those that some names are of, each once.
func (c *copier) logs(names []string, keep func(id string) (bool, error)) error {
	for _, name := range names {
		id := strings.TrimSuffix(name, ".d")
		if !isID(id) || c.has(id) {
			continue
		}
		wanted, err := keep(id)
		if err == nil && wanted {
			err = c.log(id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// has says whether a log was copied: it can have two names.
func (c *copier) has(id string) bool {
	for _, path := range []string{filepath.Join(c.to.dir, c.environment, id), c.to.moreSegments(c.environment, id)} {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}

// log copies one log. Where segments were dropped while it was copied, what stands for
// them may have come after the look at which there are: it looks again.
func (c *copier) log(id string) error {
	for try := 1; ; try++ {
		size, whole, err := c.segments(id)
		if err != nil {
			return err
		}
		if whole || try == copyTries {
			c.bytes += size
			return nil
		}
		for _, path := range []string{filepath.Join(c.to.dir, c.environment, id), c.to.moreSegments(c.environment, id)} {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
}

// segments copies the segments of a log, the last first: those before it do not grow any
// more, so that nothing is missing between two. It says whether the last was there still:
// where it was not, the log was trimmed; where only others were not, it has outgrown them.
func (c *copier) segments(id string) (size int64, whole bool, err error) {
	seqs, err := c.from.segmentsOnDisk(c.environment, id)
	if err != nil {
		return 0, false, err
	}
	from := Log{logs: c.from, environment: c.environment, command: id}
	to := Log{logs: c.to, environment: c.environment, command: id}
	for i, seq := range slices.Backward(seqs) {
		n, err := c.file(from.path(seq), to.path(seq))
		size += n
		if err == nil && i == len(seqs)-1 {
			whole = true
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return size, false, err
		}
	}
	return size, whole, nil
}

// file copies a file as far as it goes now.
func (c *copier) file(from, to string) (size int64, err error) {
	in, err := openFile(from, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return 0, err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	for size < info.Size() && err == nil && c.ctx.Err() == nil {
		var n int64
		n, err = io.CopyN(out, in, min(copyPiece, info.Size()-size))
		size += n
	}
	if errors.Is(err, io.EOF) { // it was cut
		err = nil
	}
	return size, errors.Join(err, c.ctx.Err(), out.Close())
}

// Size gives what all logs in a folder of them take on disk, in bytes.
func Size(dir string) (int64, error) {
	size, err := onDisk(dir)
	if err != nil {
		return 0, fmt.Errorf("cannot count the output logs: %w", err)
	}
	return size, nil
}
