// Package outputlog keeps the output of commands and shells on disk: one log for
// each, in the folder of its environment. It implements core.OutputLogs.
//
// A log is append-only; an offset in stdout, in stderr, in tty or in all of them
// together (stream all, in the order of arrival) means the same byte for ever. A
// shell's own log has nothing but tty. It is
// bounded: the first half and the last half are kept, as a row of segment
// files of which the oldest of the last half is deleted as the log grows.
//
//	ENV/CMD        the first segment; a command or shell without output has no file
//	ENV/CMD.d/N    the others, N = 1, 2, …
//
// What Write has taken is in the kernel: kill -9 of the service loses none of
// it. Against power loss it is safe about half a second later, see syncer.
//
// What is not protected: frames carry no checksum, so damage by the disk is
// found only where it breaks the framing. Whoever can write the folder can
// write what he likes into a log; no process of a caller may.
package outputlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"envapi/core"
	"envapi/internal/faults"
)

// Folder is what the folder of logs is called in a data folder.
const Folder = "logs"

const (
	// MinBytes is the least that a log may be bounded to.
	MinBytes = 64 << 10
	// segmentsPerLog divides the bound: at most one segment more than the
	// bound is on disk, and the first half is this finely cut.
	segmentsPerLog = 16
	// maxSegments bounds the files of a log where a full disk cuts segments
	// short again and again.
	maxSegments = 64
	// maxIdle is how many logs without users stay known, so that paging
	// through an ended log does not read it all for each page.
	maxIdle = 32
)

// Logs keeps the logs of all commands.
type Logs struct {
	dir          string
	maxBytes     int64
	segmentBytes int64
	syncer       *syncer

	mu   sync.Mutex // never held over a disk call
	logs map[key]*Log
	idle []*Log // those without users, longest idle first
}

type key struct{ environment, command string }

// Open opens the folder of logs, and makes it if there is none. maxBytes
// bounds what each log takes on disk, frame headers included; a sixteenth of
// it may come on top. It must be MinBytes or more. Close the logs at the end.
func Open(dir string, maxBytes int64) (*Logs, error) {
	if maxBytes < MinBytes {
		return nil, fmt.Errorf("cannot bound an output log to %d bytes: at least %d are needed", maxBytes, MinBytes)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find the folder of output logs: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of output logs: %w", err)
	}
	return &Logs{
		dir:          dir,
		maxBytes:     maxBytes,
		segmentBytes: maxBytes / segmentsPerLog,
		syncer:       startSyncer(dir),
		logs:         map[key]*Log{},
	}, nil
}

// Create makes the empty log of a command. It touches no file. It fails where
// the command has output already.
func (ls *Logs) Create(environmentID, commandID string) (core.OutputLog, error) {
	l, err := ls.use(environmentID, commandID)
	if err != nil {
		return nil, err
	}
	if total, _ := l.Size(core.StreamAll); total > 0 {
		l.Release()
		return nil, fmt.Errorf("cannot create the output log of %s: it exists", commandID)
	}
	return l, nil
}

// Open gives the log of a command: the one that others use at this moment, or
// else what is on disk of it, which may be nothing.
func (ls *Logs) Open(environmentID, commandID string) (core.OutputLog, error) {
	l, err := ls.use(environmentID, commandID)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// RemoveEnvironment removes every log of an environment. Those in use lose
// their bytes, and drop what is still written to them.
func (ls *Logs) RemoveEnvironment(environmentID string) error {
	if !isID(environmentID) {
		return fmt.Errorf("cannot remove output logs: %q is no id", environmentID)
	}
	for _, l := range ls.forget(func(k key) bool { return k.environment == environmentID }) {
		l.remove()
	}
	if err := faults.At("logs.begin", "remove"); err != nil {
		return fmt.Errorf("cannot remove output logs: %w", err)
	}
	if err := os.RemoveAll(filepath.Join(ls.dir, environmentID)); err != nil {
		return fmt.Errorf("cannot remove output logs: %w", err)
	}
	return errors.Join(faults.At("logs.removed", ""), syncPath(ls.dir))
}

// Close closes every log and makes all that was written safe against power
// loss. Logs must not be used after it.
func (ls *Logs) Close() error {
	for _, l := range ls.forget(func(key) bool { return true }) {
		l.rest()
	}
	return ls.syncer.stop()
}

// use gives the log of a command with one use more.
func (ls *Logs) use(environmentID, commandID string) (*Log, error) {
	if !isID(environmentID) || !isID(commandID) {
		return nil, fmt.Errorf("cannot open an output log: %q or %q is no id", environmentID, commandID)
	}
	l := ls.lookup(key{environmentID, commandID})
	l.loading.Do(func() { l.loadErr = l.load() })
	if l.loadErr != nil {
		ls.forget(func(k key) bool { return ls.logs[k] == l }) // the next one tries again
		return nil, l.loadErr
	}
	return l, nil
}

func (ls *Logs) lookup(k key) *Log {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.logs[k]
	if l == nil {
		l = &Log{logs: ls, environment: k.environment, command: k.command}
		ls.logs[k] = l
	}
	if l.uses == 0 {
		ls.idle = slices.DeleteFunc(ls.idle, func(i *Log) bool { return i == l })
	}
	l.uses++
	return l
}

// release ends one use of l. A log without users closes its file.
func (ls *Logs) release(l *Log) {
	ls.mu.Lock()
	l.uses--
	last := l.uses == 0
	ls.mu.Unlock()
	if !last {
		return
	}
	l.rest()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.uses > 0 || ls.logs[l.key()] != l || slices.Contains(ls.idle, l) {
		return // used again in the meantime, or forgotten
	}
	ls.idle = append(ls.idle, l)
	if len(ls.idle) > maxIdle {
		delete(ls.logs, ls.idle[0].key())
		ls.idle = slices.Delete(ls.idle, 0, 1)
	}
}

// forget takes logs out of those that are known, and gives them.
func (ls *Logs) forget(which func(key) bool) []*Log {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var gone []*Log
	for k, l := range ls.logs {
		if which(k) {
			gone = append(gone, l)
			delete(ls.logs, k)
		}
	}
	ls.idle = slices.DeleteFunc(ls.idle, func(l *Log) bool { return which(l.key()) })
	return gone
}

// segmentsOnDisk gives the numbers of a log's segment files, in order.
func (ls *Logs) segmentsOnDisk(environmentID, commandID string) ([]int, error) {
	entries, err := os.ReadDir(ls.moreSegments(environmentID, commandID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	seqs := []int{0} // load finds out whether it is there
	for _, e := range entries {
		seq, err := strconv.Atoi(e.Name())
		if err != nil || seq < 1 || strconv.Itoa(seq) != e.Name() {
			return nil, fmt.Errorf("%q is no segment", e.Name())
		}
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	return seqs, nil
}

// moreSegments is the folder of the segments after the first.
func (ls *Logs) moreSegments(environmentID, commandID string) string {
	return filepath.Join(ls.dir, environmentID, commandID+".d")
}

func (l *Log) key() key { return key{l.environment, l.command} }

// path gives the path of a segment's file.
func (l *Log) path(seq int) string {
	if seq == 0 {
		return filepath.Join(l.logs.dir, l.environment, l.command)
	}
	return filepath.Join(l.logs.moreSegments(l.environment, l.command), strconv.Itoa(seq))
}

// idShape is what may become a file name here.
var idShape = regexp.MustCompile(`^[a-z]+_[a-z0-9]{1,64}$`)

func isID(id string) bool { return idShape.MatchString(id) }
