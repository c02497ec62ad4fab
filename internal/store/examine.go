package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// mostDamage is how many words of damage are kept: the first ones say enough.
	mostDamage = 100
	// copyTries is how often a file is copied that changes meanwhile, as when a
	// backup beside it is the last to close it.
	copyTries = 5
)

// Examination is what was found in a store's file.
type Examination struct {
	Missing bool     // there is no file, or an empty one: a start would make a new store
	Damage  []string // in SQLite's words
	// Schema is the version that the file has, and Knows the newest that this program
	// knows.
	Schema, Knows int64
	// Refused is why a start would not open it, nil where it would.
	Refused error
	// Store is what a start would have, brought up to date: of a copy, so that all that is
	// done to it changes nothing. Nil where Refused says why, or Damage is so great that
	// nothing can be read. Close it.
	Store *Store
}

// Examine looks at the store in the file at path without changing that file, nor those
// beside it. It works on a copy in the folder dir, which takes as much space; dir is the
// caller's own, and to be removed when the store is closed. No service may have the store
// meanwhile. It fails where the file cannot be read or dir not be written.
func Examine(ctx context.Context, path, dir string) (*Examination, error) {
	copied := filepath.Join(dir, filepath.Base(path))
	size, err := copyStore(path, copied)
	if err != nil {
		return nil, fmt.Errorf("cannot copy the store %s: %w", path, err)
	}
	x := &Examination{Missing: size == 0}
	sound, err := x.inspect(ctx, copied)
	if err != nil {
		return nil, failed("examine the store "+path, err)
	}
	if !sound {
		return x, nil
	}
	if x.Refused = known(x.Schema, x.Knows); x.Refused != nil {
		return x, nil
	}
	x.Store, x.Refused = Open(ctx, copied)
	return x, nil
}

// inspect looks at a copy before a start would change it.
func (x *Examination) inspect(ctx context.Context, path string) (sound bool, err error) {
	pool, err := connect(path, 1, nil)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	said, err := words(ctx, pool, fmt.Sprintf(`PRAGMA integrity_check(%d)`, mostDamage))
	if err != nil && resultCode(err) == 0 {
		return false, err
	}
	if err != nil { // so damaged that it cannot even be asked
		said = append(said, err.Error())
	}
	if len(said) != 1 || said[0] != "ok" {
		x.Damage = said
		return false, nil
	}
	x.Damage, err = words(ctx, pool, fmt.Sprintf(
		`SELECT 'a row of ' || "table" || ' belongs to no row of ' || parent FROM pragma_foreign_key_check LIMIT %d`, mostDamage))
	if err != nil {
		return false, err
	}
	provider, err := newProvider(pool)
	if err != nil {
		return false, err
	}
	x.Schema, x.Knows, err = provider.GetVersions(ctx)
	return true, err
}

// words gives the first column of each row.
func words(ctx context.Context, pool *sql.DB, query string) ([]string, error) {
	rows, err := pool.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// copyStore copies a store's file and its write-ahead log, as they were at one time, and
// gives the length of both.
func copyStore(from, to string) (size int64, err error) {
	for range copyTries {
		before := [2]fileState{stateOf(from), stateOf(from + "-wal")}
		main, err := copyFile(from, to)
		if err != nil {
			return 0, err
		}
		log, err := copyFile(from+"-wal", to+"-wal")
		if err != nil {
			return 0, err
		}
		if before == [2]fileState{stateOf(from), stateOf(from + "-wal")} {
			return main + log, nil
		}
	}
	return 0, errors.New("it changes while it is copied: another program works on it")
}

// fileState tells a file that was changed from one that was not.
type fileState struct {
	size, ino int64
	changed   unix.Timespec
}

// stateOf gives the zero value where there is none.
func stateOf(path string) fileState {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return fileState{}
	}
	return fileState{st.Size, int64(st.Ino), st.Ctim} //nolint:gosec // compared only
}

// copyFile copies a regular file, and removes the copy where there is none.
func copyFile(from, to string) (size int64, err error) {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.Remove(to); !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return 0, errors.Join(err, errors.New("it is no regular file"))
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, err
	}
	size, err = io.Copy(out, in)
	return size, errors.Join(err, out.Close())
}

// Ran says whether there is a command or a shell of an environment by that id.
func (s *Store) Ran(ctx context.Context, environmentID, id string) (ran bool, err error) {
	err = s.reads.row(ctx, `SELECT EXISTS (SELECT 1 FROM commands WHERE id = ?1 AND environment_id = ?2)
		OR EXISTS (SELECT 1 FROM shells WHERE id = ?1 AND environment_id = ?2)`, id, environmentID).Scan(&ran)
	return ran, failed("look for a command", err)
}

// WithoutUID gives the ids of environments that are said to have a host uid which is not
// recorded as theirs.
func (s *Store) WithoutUID(ctx context.Context) ([]string, error) {
	ids, err := collect(ctx, s.lists, func(row scanner) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	}, `SELECT id FROM environments LEFT JOIN host_uids ON environment_id = id
		WHERE host_uid <> 0 AND host_uid IS NOT uid ORDER BY seq`)
	return ids, failed("compare the host uids", err)
}
