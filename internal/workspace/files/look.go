package files

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/internal/workspace/inside"
)

// Leftover is what the staging folder of an environment has, of which an Open undoes the
// changes and frees the rest.
type Leftover struct {
	ID      string // as the folder is called
	Entries int    // files and transactions
	Changes int    // transactions that were not made, of several steps each
	Steps   int    // of all of them
	// Broken is why one of them cannot be undone, as far as reading tells; nil where it
	// can.
	Broken error
}

// Look says what Open would find in a staging folder, and changes nothing. It leaves out
// empty folders.
func Look(staging, live *os.File) ([]Leftover, error) {
	ids, err := names(staging)
	if err != nil {
		return nil, failed("list the staging folder", err)
	}
	var all []Leftover
	for _, id := range ids {
		if l := look(staging, live, id); l.Entries > 0 || l.Broken != nil {
			all = append(all, l)
		}
	}
	return all, nil
}

func look(staging, live *os.File, id string) Leftover {
	l := Leftover{ID: id}
	folder, err := openAt(staging, id, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		l.Entries = 1
		return l
	}
	if err != nil {
		l.Broken = err
		return l
	}
	defer folder.Close()
	all, err := names(folder)
	l.Broken = err
	for _, name := range all {
		l.Entries++
		if !strings.HasPrefix(name, "t.") {
			continue
		}
		err := withJournal(live, id, folder, name, func(_ *os.File, j *journal, _ *inside.Root) error {
			l.Changes++
			l.Steps += len(j.Steps)
			return nil
		})
		l.Broken = errors.Join(l.Broken, err)
	}
	return l
}
