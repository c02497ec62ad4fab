package files

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/internal/workspace/inside"
)

// recover undoes the transactions that a crash has interrupted, and takes away
// whatever else is in the staging folder.
func (s *Store) recover() error {
	ids, err := names(s.staging)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.recoverEnvironment(id); err != nil {
			// Kept for the next start; the others go on.
			slog.Default().Error("a change of files that a crash interrupted could not be undone",
				"environment", id, "error", err)
		}
	}
	return s.staging.Sync()
}

func (s *Store) recoverEnvironment(id string) error {
	folder, err := openAt(s.staging, id, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return unix.Unlinkat(fd(s.staging), id, 0)
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	all, err := names(folder)
	if err != nil {
		return err
	}
	for _, name := range all {
		if strings.HasPrefix(name, "t.") {
			err = errors.Join(err, s.recoverTxn(id, folder, name))
		}
	}
	if err != nil {
		return err
	}
	return s.discard(s.staging, id, id)
}

// recoverTxn undoes one transaction.
func (s *Store) recoverTxn(id string, folder *os.File, name string) error {
	return withJournal(s.live, id, folder, name, func(dir *os.File, j *journal, root *inside.Root) error {
		return undoJournal(id, dir, j, root)
	})
}

// withJournal does something about a transaction that was not made, as the user that the
// folder belongs to; nothing where there is none, or no environment any more.
func withJournal(live *os.File, id string, folder *os.File, name string, do func(dir *os.File, j *journal, root *inside.Root) error) error {
	st, err := statOf(folder)
	if err != nil {
		return err
	}
	environment, err := openAt(live, id, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil // the environment is gone
	}
	if err != nil {
		return err
	}
	uid := int(st.Uid)
	if uid == os.Geteuid() {
		uid = 0
	}
	root := inside.NewRoot(environment, uid)
	defer func() { _ = root.Close() }()
	return root.As(func() error {
		dir, err := openAt(folder, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
		if err != nil {
			return err
		}
		defer dir.Close()
		j, err := readJournal(dir)
		if err != nil || j == nil {
			return err
		}
		return do(dir, j, root)
	})
}

// readJournal gives the journal of a transaction that was not made; nil where there
// is none.
func readJournal(dir *os.File) (*journal, error) {
	f, err := openAt(dir, journalName, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(mostJournal)))
	if err != nil {
		return nil, err
	}
	j := &journal{}
	return j, json.Unmarshal(text, j)
}

func undoJournal(id string, dir *os.File, j *journal, root *inside.Root) error {
	directories, err := j.open(root)
	defer func() {
		for _, d := range directories {
			if d != nil {
				_ = d.Close()
			}
		}
	}()
	if err != nil {
		return err
	}
	steps, lost := j.steps(directories)
	var failure error
	for i := len(steps) - 1; i >= 0; i-- {
		failure = errors.Join(failure, steps[i].undo(dir))
	}
	// Before the journal is thrown away.
	if err := errors.Join(failure, unix.Syncfs(fd(dir))); err != nil {
		return err
	}
	slog.Default().Warn("a change of files that a crash interrupted was undone",
		"environment", id, "changes", len(steps), "not_found_again", lost)
	return nil
}
