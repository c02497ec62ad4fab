package store

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestOpenLetsNobodyElseReadTheFiles(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), "envapi.db")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, path)
	mustCreate(t, s, alice, "env_1")
	mustRun(t, s, alice, "env_1", "cmd_1")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", info.Name(), mode)
		}
	}
}

// The programs that this process starts get no descriptor of the store.
func TestDescriptorsAreNotInherited(t *testing.T) {
	s := openNew(t)
	mustCreate(t, s, alice, "env_1")
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !strings.Contains(target, "/envapi.db") {
			continue
		}
		found++
		var flags int
		info := string(read(t, strings.Replace(link, "/fd/", "/fdinfo/", 1)))
		if _, err := fmt.Sscanf(info[strings.Index(info, "flags:"):], "flags: %o", &flags); err != nil || flags&syscall.O_CLOEXEC == 0 {
			t.Errorf("%s has the flags %o, %v", target, flags, err)
		}
	}
	if found < 2 {
		t.Errorf("found only %d descriptors", found)
	}
}

func TestOpenTakesAnyPath(t *testing.T) {
	for _, name := range []string{"a?b", "a#b", "a%20b", "a b&_pragma=c", "ä'\"\n"} {
		path := filepath.Join(t.TempDir(), name)
		mustCreate(t, openAt(t, path), alice, "env_1")
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenAgainFindsEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envapi.db")
	s := openAt(t, path)
	mustCreate(t, s, alice, "env_1", "env_2")
	mustRun(t, s, alice, "env_1", "cmd_1")
	_, cursor, err := s.ListEnvironments(context.Background(), alice, listInput(1, ""))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := filepath.Glob(path + "-*"); err != nil || !slices.Equal(left, []string{path + "-reserve"}) {
		t.Errorf("a closed store leaves %q, %v", left, err)
	}
	s = openAt(t, path)
	if _, err := s.Command(context.Background(), alice, "cmd_1"); err != nil {
		t.Error(err)
	}
	page, _, err := s.ListEnvironments(context.Background(), alice, listInput(1, cursor))
	if err != nil || len(page) != 1 || page[0].ID != "env_1" {
		t.Errorf("the page after a cursor from before is %v, %v", page, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(t *testing.T, path string)
		says  string
	}{
		{"a file that is no database", func(t *testing.T, path string) {
			write(t, path, bytes.Repeat([]byte("no database "), 1000))
		}, "damaged or no SQLite database"},
		{"a database cut to a half", func(t *testing.T, path string) {
			fill(t, path)
			content := read(t, path)
			write(t, path, content[:len(content)/2])
		}, "damaged or no SQLite database"},
		{"a damaged schema", func(t *testing.T, path string) {
			fill(t, path)
			content := read(t, path)
			copy(content[100:4096], bytes.Repeat([]byte{0xff}, 3996))
			write(t, path, content)
		}, "damaged or no SQLite database"},
		{"the schema of a newer envapi", func(t *testing.T, path string) {
			fill(t, path)
			s := openAt(t, path)
			if _, err := s.durable.exec(context.Background(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}, "its schema has version 99 and this envapi knows only those up to 4"},
		{"a folder in its place", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "is a directory"},
		{"a missing folder around it", func(t *testing.T, path string) {
			if err := os.Remove(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
		}, "no such file or directory"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data", "envapi.db")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, path)
			s, err := Open(context.Background(), path)
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), "cannot open the store "+path) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %q", err)
			}
		})
	}
}

// Damage that Open does not meet is said when it is.
func TestDamageIsSaidInWords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envapi.db")
	fill(t, path)
	content := read(t, path)
	at := bytes.LastIndex(content, []byte("/workspace"))
	page := at - at%4096
	copy(content[page:page+4096], bytes.Repeat([]byte{0xff}, 4096))
	write(t, path, content)

	s := openAt(t, path)
	_, _, err := s.ListCommands(context.Background(), alice, commandsInput("", "", 1000, ""))
	if err == nil || !strings.Contains(err.Error(), "cannot list the commands: the store's file is damaged") {
		t.Errorf("the error is %v", err)
	}
}

func TestCheckVersion(t *testing.T) {
	for version, good := range map[string]bool{
		"3.51.3": true, "3.51.10": true, "3.52.0": true, "4.0.0": true,
		"3.51.2": false, "3.50.9": false, "2.99.99": false, "": false, "x": false,
	} {
		err := checkVersion(version)
		if (err == nil) != good {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// fill makes a store with some pages of commands and closes it.
func fill(t *testing.T, path string) {
	t.Helper()
	s := openAt(t, path)
	mustCreate(t, s, alice, "env_1")
	for i := range 200 {
		mustRun(t, s, alice, "env_1", fmt.Sprintf("cmd_%d", i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
