// Package backup copies a data folder while its service serves, or while none does.
//
// What it makes is a data folder itself: the store as it was at one moment, and after that
// the folder or the archive of each environment in it, and the output of what ran there.
// What the service does meanwhile is noticed: an environment that was archived, restored,
// reset or deleted while it was copied is copied again, or left out, and the copy of the
// store says what it is there. So all that was answered before the backup began is in it.
//
// What is not protected: of an environment in which programs write, each file is as it was
// at some moment of the copying, and not all as at one; what is moved from a directory
// that was not read yet into one that was is missed, and a change of several files may be
// there by half. Whoever runs programs in an environment can keep that one from being
// copied, and no other: it is named. A data folder that is hostile itself is none of this
// package's: it belongs to the user who calls it.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"envapi/core"
	"envapi/internal/outputlog"
	"envapi/internal/store"
	"envapi/internal/workspace"
)

// Request says what is to be copied, and where.
type Request struct {
	Data   string      // the data folder
	To     string      // the folder that is made; there must be none, but the one above it
	Limits core.Limits // of the deployment: what folders may grow to, and what must stay free
}

// Result says what a backup holds.
type Result struct {
	Folder       string `json:"folder"`
	Environments int    `json:"environments"`
	Archived     int    `json:"archived"` // of them
	Files        int64  `json:"files"`    // in the folders of those that are not archived
	Bytes        int64  `json:"bytes"`    // of these on disk, of archives and of output
	TookMS       int64  `json:"took_ms"`
	// Left are the environments whose files could not be copied, or not all of them.
	Left []Left `json:"left"`
}

// Left is an environment of which the backup has the records, and not the files.
type Left struct {
	ID     string `json:"environment_id"`
	Reason string `json:"reason"`
}

// Make makes a backup. It is whole, on disk and under its name, or an error says why not
// and nothing is left of it; a crash leaves a folder beside it that says what it is, and
// which the next one removes. It fails with `disk_full` where there is no room: before it
// copies the files, as far as that can be known. Environments whose files it could not copy
// are no error, but named.
func Make(ctx context.Context, q Request) (Result, error) {
	began := time.Now()
	if err := q.check(); err != nil {
		return Result{}, err
	}
	p, err := begin(ctx, q.To)
	if err != nil {
		return Result{}, err
	}
	defer p.close()
	r, err := q.fill(ctx, p)
	if err == nil {
		err = p.finish()
	}
	if err != nil {
		return Result{}, errors.Join(err, p.discard())
	}
	r.TookMS = time.Since(began).Milliseconds()
	return r, nil
}

// check refuses what cannot be copied, and where no backup can be.
func (q *Request) check() (err error) {
	if q.To, err = filepath.Abs(q.To); err != nil {
		return fmt.Errorf("cannot find %s: %w", q.To, err)
	}
	data, err := os.Stat(q.Data)
	if err != nil {
		return fmt.Errorf("cannot read the data folder: %w", err)
	}
	owner, known := data.Sys().(*syscall.Stat_t)
	if !known || int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("the data folder %s belongs to another user than uid %d, which this is: make the backup as that one, "+
			"so that what is copied belongs to him too", q.Data, os.Geteuid())
	}
	if _, err := os.Stat(filepath.Join(q.Data, store.FileName)); err != nil {
		return fmt.Errorf("the data folder %s has no records, so there is nothing to back up: %w", q.Data, err)
	}
	if _, err := os.Lstat(q.To); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%s is there already: name a folder that is not", q.To))
	}
	return q.outside(data)
}

// outside fails where the backup would be in the data folder, whatever its name there, or
// in one of those in it, which may be mounted somewhere else too.
func (q *Request) outside(data os.FileInfo) error {
	own := []os.FileInfo{data}
	for _, name := range []string{workspace.LiveFolder, workspace.ArchiveFolder, outputlog.Folder, "trash", "staging", "private"} {
		if info, err := os.Stat(filepath.Join(q.Data, name)); err == nil {
			own = append(own, info)
		}
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(q.To))
	if err != nil {
		return fmt.Errorf("the folder that the backup is to be in must be there: %w", err)
	}
	for {
		info, err := os.Stat(folder)
		if err != nil {
			return fmt.Errorf("cannot look at the folder that the backup is to be in: %w", err)
		}
		if slices.ContainsFunc(own, func(o os.FileInfo) bool { return os.SameFile(o, info) }) {
			return errors.New("a backup cannot be in the data folder: name another place, best on another disk")
		}
		if folder == filepath.Dir(folder) {
			return nil
		}
		folder = filepath.Dir(folder)
	}
}

// fill copies everything.
func (q *Request) fill(ctx context.Context, p *partial) (r Result, err error) {
	space, err := q.space(p)
	if err != nil {
		return r, err
	}
	ctx, stop := space.guard(ctx)
	defer stop()
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
	}()
	if err := space.fits(core.DiskUse{Bytes: sizeOf(filepath.Join(q.Data, store.FileName))}); err != nil {
		return r, err
	}
	records, err := store.NewBackup(ctx, filepath.Join(q.Data, store.FileName), filepath.Join(p.path, store.FileName))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	m, err := newMaker(q, p, records, space)
	if err != nil {
		return r, err
	}
	defer m.close()
	if err := m.copyAll(ctx); err != nil {
		return r, err
	}
	m.result.Folder = q.To
	return m.result, records.Finish(ctx)
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
