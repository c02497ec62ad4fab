package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"envapi/internal/backup"
	"envapi/internal/config"
)

const usageBackup = `envapi-http backup copies the data folder into a new one, while the service serves
or while it does not.

  envapi-http backup FOLDER           make FOLDER, which must not be there
  envapi-http backup --json FOLDER    and say for programs what it holds

It reads the settings of the service (ENVAPI_DATA_DIR above all) and must run as the
same user. FOLDER is a data folder itself: docs/operations.md says how to restore it.

It exits with 0 if everything is in it, with 3 if it was made but the files of some
environments could not be copied, which it names, and with 1 if there is no backup;
then nothing is left of it.
`

// incomplete is the exit code for a backup in which something is missing.
const incomplete = 3

// runBackup is "envapi-http backup"; it gives the exit code.
func runBackup(ctx context.Context, p Process) int {
	to, asJSON, code, done := parseBackup(p)
	if done {
		return code
	}
	c, err := config.Load(config.Source{
		Program: config.ProgramBackup, Environ: p.Environ, Dir: p.Dir, Root: os.Geteuid() == 0,
	})
	if err != nil {
		return fail(config.ProgramBackup, p, "cannot read the settings", err)
	}
	backup.StandBack()
	made, err := backup.Make(ctx, backup.Request{Data: c.DataDir, To: to, Limits: c.Limits()})
	if err != nil {
		return fail(config.ProgramBackup, p, "cannot make the backup", err)
	}
	if err := printBackup(p.Stdout, made, asJSON); err != nil {
		return fail(config.ProgramBackup, p, "made the backup, and cannot say what it holds", err)
	}
	for _, left := range made.Left {
		_, _ = fmt.Fprintf(p.Stderr, "%s: the files of %s are not in it: %s\n", config.ProgramBackup, left.ID, left.Reason)
	}
	if len(made.Left) > 0 {
		return incomplete
	}
	return 0
}

// parseBackup reads the command line behind the word.
func parseBackup(p Process) (to string, asJSON bool, code int, done bool) {
	define := func(flags *flag.FlagSet) { flags.BoolVar(&asJSON, "json", false, "") }
	code, done = parseFlags(config.ProgramBackup, usageBackup, p, p.Args[1:], define, func(rest []string) error {
		if len(rest) != 1 || rest[0] == "" {
			return errors.New("name one folder, behind the options, that is to be made")
		}
		if to = rest[0]; !filepath.IsAbs(to) {
			to = filepath.Join(p.Dir, to)
		}
		return nil
	})
	return to, asJSON, code, done
}

func printBackup(w io.Writer, r backup.Result, asJSON bool) error {
	if asJSON {
		return printJSON(w, r)
	}
	_, err := fmt.Fprintf(w, "%s holds %d environments (%d archived), %d files, %d bytes; it took %v\n",
		r.Folder, r.Environments, r.Archived, r.Files, r.Bytes, time.Duration(r.TookMS)*time.Millisecond)
	return err
}
