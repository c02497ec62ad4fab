package files

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/inside"
)

const (
	journalName = ".journal"
	journalNew  = ".journal.new"
	journalDone = ".done"
)

// mostJournal bounds a journal: some hundred thousand steps. No longer one is written,
// since what is not read back whole undoes nothing.
var mostJournal = 64 << 20 // tests make it less

// journal is what undoes a transaction after a crash. As long as it has its name, the
// transaction is not made.
type journal struct {
	Directories []journalDirectory `json:"directories"`
	Steps       []journalStep      `json:"steps"`
}

// journalDirectory is how a directory is found again: by its path at that time, as
// long as that leads to the same inode.
type journalDirectory struct {
	Path []byte `json:"path"`
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
}

// journalStep is a step in one of the directories.
type journalStep struct {
	Op     string   `json:"op"`
	Name   string   `json:"name"`
	In     int      `json:"in"`
	Target []byte   `json:"target"`
	Put    identity `json:"put"`
}

// writeJournal makes the journal durable, before the first step.
func (x *Txn) writeJournal() error {
	j, known := journal{}, map[lockKey]int{}
	for _, s := range x.steps {
		in, err := x.journalDirectory(&j, known, s.at)
		if err != nil {
			return err
		}
		j.Steps = append(j.Steps, journalStep{Op: s.op, Name: s.name, In: in, Target: []byte(s.target), Put: s.put})
	}
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if len(text) > mostJournal {
		return core.Errorf(core.CodeTooLarge, "cannot make %d changes at once, all or none: make fewer at once", len(x.steps)).
			With("allowed_bytes", mostJournal)
	}
	return x.tree.root.As(func() error { return x.putJournal(text) })
}

// journalDirectory gives the number that a place's directory has in the journal, which
// it has once: at recovery a descriptor is held for each.
func (x *Txn) journalDirectory(j *journal, known map[lockKey]int, at *inside.Place) (int, error) {
	key, err := keyOf(at)
	if err != nil {
		return 0, err
	}
	key.name = ""
	if n, ok := known[key]; ok {
		return n, nil
	}
	path, err := x.tree.below(at)
	if err != nil {
		return 0, err
	}
	known[key] = len(j.Directories)
	j.Directories = append(j.Directories, journalDirectory{Path: []byte(path), Dev: key.dev, Ino: key.ino})
	return known[key], nil
}

// below gives the path of a place's directory below the workspace, as it is now.
func (t *Tree) below(at *inside.Place) (string, error) {
	base, err := hostPath(t.root.Descriptor())
	if err != nil {
		return "", err
	}
	path, err := hostPath(at.Dir)
	if errors.Is(err, unix.ENAMETOOLONG) {
		return "", inside.Fault(at.Path, err) // so deep that no path would find it again
	}
	if err != nil {
		return "", err
	}
	path, ok := strings.CutPrefix(path+"/", base+"/")
	if !ok {
		return "", changed(at.Path) // another call has taken it out of the workspace
	}
	return strings.TrimSuffix(path, "/"), nil
}

func (x *Txn) putJournal(text []byte) error {
	f, err := openAt(x.dir, journalNew, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := unix.Renameat(fd(x.dir), journalNew, fd(x.dir), journalName); err != nil {
		return err
	}
	return errors.Join(x.dir.Sync(), x.folder.Sync())
}

// endJournal makes the transaction made.
func (x *Txn) endJournal() error {
	err := x.tree.root.As(func() error {
		return unix.Renameat(fd(x.dir), journalName, fd(x.dir), journalDone)
	})
	return failed("make a change durable", join(err, x.dir.Sync()))
}

// hostPath gives the path of an open directory at this moment.
func hostPath(dir *os.File) (string, error) {
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd(dir)))
}

// open finds the directories of a journal again below a folder; nil is one that is not
// there any more, and any other failure is one of finding out.
func (j *journal) open(root *inside.Root) (all []*os.File, err error) {
	for _, said := range j.Directories {
		dir, err := said.open(root)
		all = append(all, dir)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

func (d *journalDirectory) open(root *inside.Root) (*os.File, error) {
	at, err := root.Locate(string(d.Path), inside.Mode{})
	for _, gone := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV} {
		if errors.Is(err, gone) {
			return nil, nil // a program inside has made that of it
		}
	}
	if err != nil {
		return nil, err
	}
	if !at.Exists() || at.Stat.Dev != d.Dev || at.Stat.Ino != d.Ino {
		at.Close()
		return nil, nil
	}
	return at.Leaf, at.Dir.Close()
}

// steps gives the steps of a journal, given its directories. What cannot be found any
// more is left out, and counted.
func (j *journal) steps(directories []*os.File) (steps []*step, lost int) {
	for _, said := range j.Steps {
		if said.In < 0 || said.In >= len(directories) || directories[said.In] == nil {
			lost++
			continue
		}
		at := &inside.Place{Dir: directories[said.In], Name: string(said.Target), Path: string(said.Target)}
		steps = append(steps, &step{op: said.Op, name: said.Name, at: at, target: at.Name, put: said.Put})
	}
	return steps, lost
}
