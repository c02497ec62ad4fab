package outputlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// FaultKind is what is wrong with an output log.
type FaultKind string

// The kinds of faults.
const (
	// Torn is an end that a kill or a full disk cut: readers pass over it.
	Torn FaultKind = "torn"
	// Damaged is a part that is no output, with what comes after it.
	Damaged FaultKind = "damaged"
	// Unowned is a log of no command or shell.
	Unowned FaultKind = "unowned"
	// Strange is a name that is no log's.
	Strange FaultKind = "strange"
)

// Fault is something that is wrong with an output log.
type Fault struct {
	Kind            FaultKind
	Path            string // below the folder of logs; may hold anything where it is strange
	Environment, ID string // whose log it is; "" where it is strange
	Bytes           int64  // that cannot be read
}

// Look reads all logs in a folder to their ends and tells of what is wrong, and changes
// nothing. ran says whether there is a command or shell by that id. It gives how many logs
// there are, and fails where the folder cannot be read or ran fails. A folder that is not
// there has no logs.
func Look(ctx context.Context, dir string, ran func(environmentID, id string) (bool, error), tell func(Fault)) (logs int, err error) {
	l := looker{ctx: ctx, dir: dir, ran: ran, tell: tell}
	if err := l.each("", l.environment); err != nil {
		return l.logs, fmt.Errorf("cannot look at the output logs: %w", err)
	}
	return l.logs, nil
}

// looker looks at all logs.
type looker struct {
	ctx  context.Context //nolint:containedctx // of one call
	dir  string
	ran  func(environmentID, id string) (bool, error)
	tell func(Fault)
	logs int
}

// each goes through a folder, in pieces.
func (l *looker) each(path string, do func(path, name string) error) error {
	dir, err := os.OpenFile(filepath.Join(l.dir, path), os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case path != "" && (errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)):
		l.tell(Fault{Kind: Strange, Path: path})
		return nil
	case err != nil:
		return err
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(namesAtOnce)
		if errors.Is(err, io.EOF) {
			return nil
		}
		for _, name := range names {
			if err == nil {
				err = errors.Join(l.ctx.Err(), do(path, name))
			}
		}
		if err != nil {
			return err
		}
	}
}

func (l *looker) environment(_, name string) error {
	if !isID(name) {
		l.tell(Fault{Kind: Strange, Path: name})
		return nil
	}
	return l.each(name, l.log)
}

// log looks at the first segment of a log, or at the others.
func (l *looker) log(environment, name string) error {
	path := filepath.Join(environment, name)
	id, more := strings.CutSuffix(name, ".d")
	if !isID(id) {
		l.tell(Fault{Kind: Strange, Path: path})
		return nil
	}
	ran, err := l.ran(environment, id)
	if err != nil {
		return err
	}
	if !ran {
		l.tell(Fault{Kind: Unowned, Path: path, Environment: environment, ID: id})
		return nil
	}
	if !more {
		l.logs++
		return l.segment(path, environment, id)
	}
	return l.each(path, func(path, name string) error {
		path = filepath.Join(path, name)
		if seq, err := strconv.Atoi(name); err != nil || seq < 1 || strconv.Itoa(seq) != name {
			l.tell(Fault{Kind: Strange, Path: path})
			return nil
		}
		return l.segment(path, environment, id)
	})
}

// segment reads a segment to its end.
func (l *looker) segment(path, environment, id string) error {
	f, err := os.OpenFile(filepath.Join(l.dir, path), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
		l.tell(Fault{Kind: Strange, Path: path})
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		l.tell(Fault{Kind: Strange, Path: path})
		return nil
	}
	var whole int64
	switch s, err := scanSegment(f, info.Size(), path, 0); {
	case err == nil:
		whole = s.size
	case !errors.Is(err, errCorrupt):
		return err
	}
	if left := info.Size() - whole; left > 0 {
		kind, err := endsAs(f, whole, left)
		if err != nil {
			return err
		}
		l.tell(Fault{Kind: kind, Path: path, Environment: environment, ID: id, Bytes: left})
	}
	return nil
}

// endsAs says what the bytes after the last whole frame of a segment are, left in number,
// or of all of it where it has no header.
func endsAs(f io.ReaderAt, at, left int64) (FaultKind, error) {
	head := make([]byte, min(left, segmentHeaderBytes))
	if _, err := f.ReadAt(head, at); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if strings.Trim(string(head), "\x00") == "" {
		return Torn, nil // a power loss leaves what was never written
	}
	if at == 0 {
		if left < segmentHeaderBytes && strings.HasPrefix(segmentMagic, string(head[:min(left, int64(len(segmentMagic)))])) {
			return Torn, nil
		}
		return Damaged, nil
	}
	if left < frameHeaderBytes {
		return Torn, nil
	}
	if _, err := parseFrame(head); err != nil {
		return Damaged, nil
	}
	return Torn, nil
}
