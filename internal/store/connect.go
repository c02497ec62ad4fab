package store

import (
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
)

// busyTimeoutMS is how long SQLite waits for a lock. Writers take turns before they get
// there, so only a checkpoint or another program holds one.
const busyTimeoutMS = 10_000

// connect opens up to size connections, which last, to the file at path.
func connect(path string, size int, query url.Values) (*sql.DB, error) {
	name, err := sourceName(path, query)
	if err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	return pool, nil
}

// sourceName names a file for SQLite, whatever its path is made of, and how to open it.
func sourceName(path string, query url.Values) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	return name.String(), nil
}

// pragmas has each connection begin with the timeout and with these.
func pragmas(more ...string) url.Values {
	return url.Values{"_pragma": append([]string{fmt.Sprintf("busy_timeout(%d)", busyTimeoutMS)}, more...)}
}

// toRead has SQLite write nothing to a file.
func toRead() url.Values {
	query := pragmas()
	query.Set("mode", "ro")
	return query
}
