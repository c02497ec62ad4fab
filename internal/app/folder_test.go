package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"envapi/internal/store"
)

func isRoot() bool { return os.Geteuid() == 0 }

func TestANewDataFolderIsClosedToOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := prepareFolder(dir); err != nil {
		t.Fatal(err)
	}
	want := os.FileMode(0o700)
	if isRoot() {
		want = 0o711
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != want {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := prepareFolder(dir); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestAnExistingFolderIsTakenAsItIsOrRefused(t *testing.T) {
	for mode, refusal := range map[os.FileMode]string{
		0o700: "", 0o711: "", 0o755: "", 0o750: "",
		0o770: "others may write", 0o777: "others may write", 0o702: "others may write",
	} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		err := prepareFolder(dir)
		if (err == nil) != (refusal == "") || err != nil && !strings.Contains(err.Error(), refusal) {
			t.Errorf("mode %v: %v", mode, err)
		}
		if info, _ := os.Stat(dir); info.Mode().Perm() != mode {
			t.Errorf("mode %v became %v", mode, info.Mode().Perm())
		}
	}
}

func TestWhatIsNoFolderOfThisUserIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := prepareFolder(file); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("a file: %v", err)
	}
	foreign := "/usr" // root's
	if isRoot() {
		foreign = filepath.Join(t.TempDir(), "data")
		if err := os.Mkdir(foreign, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(foreign, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	if err := prepareFolder(foreign); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("another's: %v", err)
	}
}

// TestAFolderWithoutItsRecordsIsRefused: a start would remove all that is in it.
func TestAFolderWithoutItsRecordsIsRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		below   string // what there is
		records string // "": none
		refused bool
	}{
		{"a new one", "", "", false},
		{"one whose first start was cut short", "workspaces", "", false},
		{"a folder without records", "workspaces/env_1", "", true},
		{"an archive without records", "archives/env_1.tar.zst", "", true},
		{"records of no bytes", "workspaces/env_1", "empty", true},
		{"records", "workspaces/env_1", "full", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, c.below), 0o700); err != nil {
				t.Fatal(err)
			}
			if c.records != "" {
				content := map[string]string{"empty": "", "full": "SQLite format 3"}[c.records]
				if err := os.WriteFile(filepath.Join(dir, store.FileName), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := requireRecords(dir)
			if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "put them back") {
				t.Errorf("got %v", err)
			}
		})
	}
}
