package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

func newProvider(pool *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectSQLite3, pool, files,
		goose.WithLogger(goose.NopLogger()), goose.WithDisableGlobalRegistry(true))
}

// known refuses a schema that a newer program wrote.
func known(has, knows int64) error {
	if has <= knows {
		return nil
	}
	return fmt.Errorf("its schema has version %d and this envapi knows only those up to %d: "+
		"use the newer envapi that wrote it, or a backup from before", has, knows)
}

// checkEngine makes sure that SQLite is sound and can do what is asked of it.
func checkEngine(ctx context.Context, pool *sql.DB) error {
	var version, journal string
	if err := pool.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version); err != nil {
		return err
	}
	if err := checkVersion(version); err != nil {
		return err
	}
	if err := pool.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&journal); err != nil {
		return err
	}
	if journal != "wal" {
		return fmt.Errorf("its file system cannot hold a write-ahead log (journal mode %q): "+
			"put the data folder on a local one", journal)
	}
	return nil
}

// checkVersion refuses SQLite before 3.51.3, whose write-ahead log can corrupt
// the file when a checkpoint meets a reset (https://sqlite.org/wal.html).
func checkVersion(version string) error {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return fmt.Errorf("cannot read SQLite's version %q: %w", version, err)
	}
	if major*1_000_000+minor*1_000+patch < 3_051_003 {
		return fmt.Errorf("SQLite %s can corrupt its write-ahead log: build envapi with 3.51.3 or later", version)
	}
	return nil
}
