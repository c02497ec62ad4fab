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

// mostJournal bounds a journal: 16 Ki steps of long paths, or some hundred thousand of
// short ones.
var mostJournal = 64 << 20 // tests make it less

// journal is what undoes a transaction after a crash. As long as it has its name, the
// transaction is not made.
type journal struct {
	Steps []journalStep `json:"steps"`
}

// journalStep is a step, and how its directory is found again: by its path at that
// time, as long as that leads to the same inode.
type journalStep struct {
	Op     string   `json:"op"`
	Name   string   `json:"name"`
	Path   []byte   `json:"path"`
	Dev    uint64   `json:"dev"`
	Ino    uint64   `json:"ino"`
	Target []byte   `json:"target"`
	Put    identity `json:"put"`
}

// writeJournal makes the journal durable, before the first step.
func (x *Txn) writeJournal() error {
	j := journal{}
	base, err := hostPath(x.tree.root.Descriptor())
	if err != nil {
		return err
	}
	for _, s := range x.steps {
		key, err := keyOf(s.at)
		if err != nil {
			return err
		}
		path, err := hostPath(s.at.Dir)
		if err != nil {
			return err
		}
		path, ok := strings.CutPrefix(path+"/", base+"/")
		if !ok {
			return errors.New("a directory was moved out of the workspace")
		}
		j.Steps = append(j.Steps, journalStep{
			Op: s.op, Name: s.name, Path: []byte(strings.TrimSuffix(path, "/")),
			Dev: key.dev, Ino: key.ino, Target: []byte(s.target), Put: s.put,
		})
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
	if err != nil {
		return err
	}
	return x.dir.Sync()
}

// hostPath gives the path of an open directory at this moment.
func hostPath(dir *os.File) (string, error) {
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd(dir)))
}

// steps finds the places of a journal again below a folder. What cannot be found any
// more is left out, and counted.
func (j *journal) steps(root *inside.Root) (steps []*step, lost int) {
	for _, said := range j.Steps {
		dir, err := root.Locate(string(said.Path), inside.Mode{})
		if err != nil {
			lost++
			continue
		}
		if dir.Leaf == nil || dir.Stat.Dev != said.Dev || dir.Stat.Ino != said.Ino {
			dir.Close()
			lost++
			continue
		}
		at := &inside.Place{Dir: dir.Leaf, Name: string(said.Target), Path: string(said.Target)}
		_ = dir.Dir.Close()
		steps = append(steps, &step{op: said.Op, name: said.Name, at: at, target: at.Name, put: said.Put})
	}
	return steps, lost
}
