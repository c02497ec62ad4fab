package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"envapi/core"
	"envapi/internal/outputlog"
	"envapi/internal/store"
	"envapi/internal/workspace"
)

// Request says what to look at.
type Request struct {
	Data   string      // the data folder; nobody else may have it meanwhile
	Temp   string      // an empty folder of the caller's, who removes it
	Quick  bool        // whether archives are not read to their ends
	Limits core.Limits // of the deployment
}

const database = store.FileName

// known are the names in a data folder.
var known = map[string]bool{
	"envapi.lock": true, database: true, database + "-wal": true, database + "-shm": true, database + "-reserve": true,
	workspace.LiveFolder: true, "trash": true, workspace.ArchiveFolder: true, "staging": true, outputlog.Folder: true, "private": true,
	"dev-key": true, "dev-token": true,
}

// checker is one check.
type checker struct {
	Request
	ctx    context.Context //nolint:containedctx // of one call
	report *Report
	survey *workspace.Survey
	exam   *store.Examination
}

// Run checks a data folder. It fails where it cannot look; what it finds is in the report.
// It takes as much space in Temp as the records have, and little memory.
func Run(ctx context.Context, r Request) (_ *Report, err error) {
	c := &checker{Request: r, ctx: ctx, report: &Report{Folder: r.Data, Findings: []Finding{}}}
	if err := c.layout(); err != nil {
		return nil, err
	}
	if c.survey, err = workspace.Look(r.Data); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.survey.Close()) }()
	if c.exam, err = store.Examine(ctx, filepath.Join(r.Data, database), r.Temp); err != nil {
		return nil, err
	}
	if s := c.exam.Store; s != nil {
		defer func() { err = errors.Join(err, s.Close()) }()
	}
	if c.records() {
		if err := errors.Join(c.environments(), c.logs()); err != nil {
			return nil, err
		}
	}
	c.folders()
	return c.report, ctx.Err()
}

// layout looks at what is in the folder itself.
func (c *checker) layout() error {
	entries, err := os.ReadDir(c.Data)
	if err != nil {
		return fmt.Errorf("cannot list the data folder: %w", err)
	}
	var ours bool
	for _, e := range entries {
		if known[e.Name()] {
			ours = true
		} else {
			c.report.note(e.Name(), "it is none of the service's", "it is passed over")
		}
	}
	if !ours { // a wrong name, or a disk that is not mounted: all would be well with it
		return fmt.Errorf("%s is no data folder: no service or backup has made anything in it", c.Data)
	}
	info, err := os.Lstat(filepath.Join(c.Data, database))
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		c.report.mends(database, fmt.Sprintf("others may use it (mode %04o)", info.Mode().Perm()), "a start gives it the mode 0600")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot look at the records: %w", err)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(c.Data, &disk); err != nil {
		return fmt.Errorf("cannot look at the disk: %w", err)
	}
	total := core.DiskUse{Bytes: int64(disk.Blocks) * disk.Bsize, Files: int64(disk.Files)}         //nolint:gosec // of a disk, far below 2^63
	if free, least := int64(disk.Bavail)*disk.Bsize, c.Limits.Reserved(total).Bytes; free < least { //nolint:gosec // likewise
		c.report.note("disk", fmt.Sprintf("%d bytes are free, and %d should be", free, least),
			"make room: environments that fill the disk are ended (ENVAPI_MIN_FREE_DISK_BYTES)")
	}
	return nil
}

// records says what is wrong with the database itself, and whether a start would use it.
func (c *checker) records() bool {
	x := c.exam
	c.report.Schema, c.report.Knows = x.Schema, x.Knows
	for _, said := range x.Damage {
		c.report.damaged(database, said, "put back a backup")
	}
	folders, archives := len(c.survey.Folders), len(c.survey.Archives)
	switch {
	case x.Refused != nil:
		c.report.damaged(database, x.Refused.Error(), "the service does not start")
		return false
	case x.Missing && folders+archives > 0:
		c.report.damaged(database, "it is missing or empty, and so the records of all environments",
			fmt.Sprintf("put it back: the service does not start, since it would remove the %d folders and %d archives", folders, archives))
		return false
	case x.Missing:
		c.report.note(database, "there is none yet", "a start makes it")
	case len(x.Damage) == 0 && x.Schema < x.Knows:
		c.report.mends(database, fmt.Sprintf("its schema has version %d", x.Schema),
			fmt.Sprintf("a start upgrades it to version %d", x.Knows))
	}
	return x.Store != nil
}

// logs looks at the output.
func (c *checker) logs() (err error) {
	ran := func(environmentID, id string) (bool, error) { return c.exam.Store.Ran(c.ctx, environmentID, id) }
	c.report.Logs, err = outputlog.Look(c.ctx, filepath.Join(c.Data, outputlog.Folder), ran, func(f outputlog.Fault) {
		path := filepath.Join(outputlog.Folder, f.Path)
		switch f.Kind {
		case outputlog.Torn:
			c.report.note(path, fmt.Sprintf("its last %d bytes are not whole: a kill or a full disk cut it", f.Bytes), "who reads it finds what is before them")
		case outputlog.Damaged:
			c.report.damaged(path, fmt.Sprintf("%d bytes are no output", f.Bytes), "put back a copy of it, or leave it: who reads it finds what is before them")
		case outputlog.Unowned:
			c.report.note(path, "there is no command or shell by that id", "nobody reads it, and it can be removed")
		case outputlog.Strange:
			c.report.note(path, "it is none of the service's", "it is passed over")
		}
	})
	return err
}

// folders says what Open does about the folders of workspaces.
func (c *checker) folders() {
	s := c.survey
	for _, name := range s.Missing {
		c.report.note(name, "there is none", "a start makes it")
	}
	for _, path := range s.Strange {
		c.report.note(path, "it is none of the service's", "it is passed over")
	}
	if s.Unfinished > 0 {
		c.report.mends(workspace.ArchiveFolder, fmt.Sprintf("%d archives were being written", s.Unfinished), "a start removes them")
	}
	if s.Trash > 0 {
		c.report.mends("trash", fmt.Sprintf("%d trees are being freed", s.Trash), "a start goes on with it")
	}
	for _, l := range s.Leftovers {
		path := filepath.Join("staging", l.ID)
		switch {
		case l.Broken != nil:
			c.report.damaged(path, fmt.Sprintf("a change of files was interrupted and cannot be undone: %v", l.Broken),
				"it is kept for you to look at; a start serves the rest")
		case l.Changes > 0:
			c.report.add(Finding{
				Level: Mends, What: path, Says: fmt.Sprintf("%d changes of files were interrupted (%d steps)", l.Changes, l.Steps),
				Then: "a start undoes them", Logs: "a change of files that a crash interrupted was undone",
			})
		default:
			c.report.mends(path, fmt.Sprintf("%d files were on their way", l.Entries), "a start frees them")
		}
	}
}

// lost is an end for what ran, in the copy of the records.
func lost() core.CommandEnd {
	now := time.Now()
	return core.CommandEnd{Status: core.CommandLost, Reason: core.ReasonServiceStopped, EndedAt: &now}
}
