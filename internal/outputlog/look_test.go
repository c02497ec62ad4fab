package outputlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
)

// look gives what is found, as "kind path bytes".
func look(t *testing.T, dir string) (logs int, found []string) {
	t.Helper()
	logs, err := Look(t.Context(), dir,
		func(environment, id string) (bool, error) { return environment == testEnv && id == testCmd, nil },
		func(f Fault) { found = append(found, fmt.Sprintf("%s %s %d", f.Kind, f.Path, f.Bytes)) })
	if err != nil {
		t.Fatal(err)
	}
	return logs, found
}

func TestAnExaminationOfLogsFindsWhatIsWrong(t *testing.T) {
	first := filepath.Join(testEnv, testCmd)
	second := filepath.Join(testEnv, testCmd+".d", "1")
	for name, test := range map[string]struct {
		harm func(dir string) error
		want string // "" is nothing
	}{
		"nothing": {func(string) error { return nil }, ""},
		"the last frame is cut": {func(dir string) error {
			return os.Truncate(filepath.Join(dir, first), segmentHeaderBytes+100)
		}, "torn " + first + " 100"},
		"the header is cut":   {func(dir string) error { return os.Truncate(filepath.Join(dir, first), 5) }, "torn " + first + " 5"},
		"nothing was written": {func(dir string) error { return os.Truncate(filepath.Join(dir, first), 0) }, ""},
		"zeros after a power loss": {func(dir string) error {
			return errors.Join(os.Truncate(filepath.Join(dir, second), segmentHeaderBytes), os.Truncate(filepath.Join(dir, second), segmentHeaderBytes+64))
		}, "torn " + second + " 64"},
		"another frame":  {func(dir string) error { return overwrite(filepath.Join(dir, second), segmentHeaderBytes, "xxxxxxxx") }, "damaged"},
		"another header": {func(dir string) error { return overwrite(filepath.Join(dir, first), 0, "x") }, "damaged"},
		"no command's": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, testEnv, "cmd_unknown"), nil, 0o600)
		}, "unowned " + testEnv + "/cmd_unknown 0"},
		"another environment's": {func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "env_other"), 0o700), os.WriteFile(filepath.Join(dir, "env_other", testCmd), nil, 0o600))
		}, "unowned env_other/" + testCmd + " 0"},
		"a file among the folders":     {func(dir string) error { return os.WriteFile(filepath.Join(dir, "env_file"), nil, 0o600) }, "strange env_file 0"},
		"a name of control characters": {func(dir string) error { return os.Mkdir(filepath.Join(dir, "a\x1b[2J\n"), 0o700) }, "strange a\x1b[2J\n 0"},
		"a link to a file": {func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, first)), os.Symlink("/etc/passwd", filepath.Join(dir, first)))
		}, "strange " + first + " 0"},
		"a link to a folder": {func(dir string) error { return os.Symlink("/etc", filepath.Join(dir, "env_link")) }, "strange env_link 0"},
		"a FIFO": {func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, first)), unix.Mkfifo(filepath.Join(dir, first), 0o600))
		}, "strange " + first + " 0"},
		"no number": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, testEnv, testCmd+".d", "01"), nil, 0o600)
		}, "strange " + testEnv + "/" + testCmd + ".d/01 0"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ls, err := Open(dir, MinBytes)
			if err != nil {
				t.Fatal(err)
			}
			fill(t, openLog(t, ls, testCmd))
			if err := errors.Join(ls.Close(), test.harm(dir)); err != nil {
				t.Fatal(err)
			}
			logs, found := look(t, dir)
			switch {
			case logs != 1:
				t.Errorf("there are %d logs", logs)
			case test.want == "" && len(found) == 0:
			case len(found) != 1 || test.want == "" || !bytes.HasPrefix([]byte(found[0]), []byte(test.want)):
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
	if logs, err := Look(t.Context(), filepath.Join(t.TempDir(), "none"), nil, nil); err != nil || logs != 0 {
		t.Errorf("where there are none: %d, %v", logs, err)
	}
}

func overwrite(path string, at int64, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), at)
	return errors.Join(err, f.Close())
}

// TestALogOfManyPiecesIsWhole has every kind of log that is written be found right.
func TestALogOfManyPiecesIsWhole(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, openLogs(t, dir, MinBytes), testCmd)
	for range 100 {
		write(t, l, core.StreamStdout, bytes.Repeat([]byte("o"), 5000))
	}
	if _, found := look(t, dir); len(found) > 0 {
		t.Errorf("found %q", found)
	}
}
