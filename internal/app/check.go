package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"envapi/internal/check"
	"envapi/internal/config"
	"envapi/internal/datalock"
)

const usageCheck = `envapi-http check looks at a data folder, changes nothing, and says what a start would
mend and what it could not.

  envapi-http check [FOLDER]    a table for people; without FOLDER the settings' own
      --json                    the same for programs
      --quick                   without reading every archive to its end

It must run as the user whom the service runs as, and not while that runs: make a backup
and check that instead. It works on a copy of the records in TMPDIR, which takes as much
space as they do.

It exits with 0 if there is nothing to do, with 1 if a start would mend something, with
3 if something is damaged that no start mends, and with 2 if the folder cannot be checked.
`

// The exit codes of check.
const (
	checkMends   = 1
	checkCannot  = 2
	checkDamaged = 3
)

// checkup is one run of the command.
type checkup struct {
	json, quick bool
	folder      string // "" is the settings' own
}

// runCheck is "envapi-http check"; it gives the exit code.
func runCheck(ctx context.Context, p Process) int {
	u, code, done := parseCheck(p)
	if done {
		return code
	}
	cannot := func(what string, err error) int {
		_ = fail(config.ProgramCheck, p, what, err)
		return checkCannot
	}
	c, err := config.Load(config.Source{
		Program: config.ProgramCheck, Environ: p.Environ, Dir: p.Dir, Root: os.Geteuid() == 0,
	})
	if err != nil {
		return cannot("cannot read the settings", err)
	}
	if u.folder == "" {
		u.folder = c.DataDir
	}
	report, err := u.look(ctx, c)
	if err != nil {
		return cannot("cannot check the folder", err)
	}
	if err := u.print(p.Stdout, report); err != nil {
		return cannot("cannot say what was found", err)
	}
	switch report.Worst() {
	case check.Damaged:
		return checkDamaged
	case check.Mends:
		return checkMends
	}
	return 0
}

// parseCheck reads the command line behind the word.
func parseCheck(p Process) (u checkup, code int, done bool) {
	define := func(flags *flag.FlagSet) {
		flags.BoolVar(&u.json, "json", false, "")
		flags.BoolVar(&u.quick, "quick", false, "")
	}
	code, done = parseFlags(config.ProgramCheck, usageCheck, p, p.Args[1:], define, func(rest []string) error {
		switch {
		case len(rest) > 1:
			return errors.New("name one folder, behind the options")
		case len(rest) == 1 && rest[0] == "":
			return errors.New("the name of the folder is empty")
		case len(rest) == 1:
			u.folder = rest[0]
		}
		return nil
	})
	return u, code, done
}

// look checks the folder while nobody else has it.
func (u checkup) look(ctx context.Context, c config.Config) (_ *check.Report, err error) {
	folder, err := filepath.Abs(u.folder)
	if err != nil {
		return nil, err
	}
	if err := fitFolder(folder); err != nil {
		return nil, err
	}
	lock, err := datalock.AcquireExisting(folder, datalock.Holder{
		PID: os.Getpid(), Program: string(config.ProgramCheck), Started: time.Now(),
	})
	if err != nil {
		return nil, err
	}
	if lock != nil {
		defer func() { err = errors.Join(err, lock.Close()) }()
	}
	temp, err := os.MkdirTemp("", "envapi-check-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for a copy of the records, for which TMPDIR says where: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	report, err := check.Run(ctx, check.Request{Data: folder, Temp: temp, Quick: u.quick, Limits: c.Limits()})
	if err == nil && lock == nil && datalock.Exists(folder) {
		err = errors.New("a service was started on it meanwhile: check it again when that has ended")
	}
	return report, err
}

func (u checkup) print(w io.Writer, r *check.Report) error {
	if u.json {
		return printJSON(w, r)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, level := range []check.Level{check.Damaged, check.Mends, check.Note} {
		for _, f := range r.Findings {
			if f.Level == level {
				_, _ = fmt.Fprintf(table, "%s\t%s\t%s: %s\n", level, f.What, f.Says, f.Then)
			}
		}
	}
	err := table.Flush()
	if more := r.Damaged + r.Mends + r.Notes - len(r.Findings); more > 0 {
		_, _ = fmt.Fprintf(w, "… and %d more\n", more)
	}
	_, last := fmt.Fprintf(w, "%s: %d environments, %d archives and %d output logs read: %d damaged, %d mended by a start, %d notes\n",
		r.Folder, r.Environments, r.ArchivesRead, r.Logs, r.Damaged, r.Mends, r.Notes)
	return errors.Join(err, last)
}
