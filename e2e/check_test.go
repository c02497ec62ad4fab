package e2e

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"envapi/internal/testbin"
)

// checked is what check says.
type checked struct {
	Findings              []checkFinding
	Notes, Mends, Damaged int
	Environments, Logs    int
	ArchivesRead          int `json:"archives_read"`
	code                  int
}

type checkFinding struct{ Level, What, Says, Then, Logs string }

// check checks a data folder, and sees that nothing of it changes.
func (c config) check(t *testing.T, args ...string) checked {
	t.Helper()
	before := stateOf(t, c.data)
	out, code := c.checkup(t, append([]string{"--json"}, args...)...)
	found := checked{code: code}
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatalf("it exited with %d and says %s", code, out)
	}
	if after := stateOf(t, c.data); after != before {
		t.Errorf("check changed the folder from\n%s\nto\n%s", before, after)
	}
	return found
}

// checkup runs the command, whose temporary files must all be gone at its end.
func (c config) checkup(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(testbin.Path(t, "envapi-http"), append([]string{"check"}, args...)...)
	temp := t.TempDir()
	cmd.Dir, cmd.Env = t.TempDir(), append(settings(c, nil), "TMPDIR="+temp)
	out, code := output(t, cmd)
	if left := namesIn(t, temp); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
	return out, code
}

// stateOf says everything that can be told of a folder, but for the text of its lock,
// which says who had it last.
func stateOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err == nil && filepath.Base(path) != "envapi.lock" {
			fmt.Fprintf(&b, "%q %v %d %v\n", path, info.Mode(), info.Size(), info.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// twin is the settings of a service that has ended, for a copy of its folder.
func (s *service) twin(t *testing.T) config {
	t.Helper()
	c := s.config
	c.data = filepath.Join(passable(t), "data")
	if out, err := exec.Command("cp", "-a", s.data, c.data).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return c
}

// at gives a path below the data folder.
func (c config) at(path ...string) string { return filepath.Join(append([]string{c.data}, path...)...) }

// records changes the records behind everybody's back.
func (c config) records(statements ...string) error {
	db, err := sql.Open("sqlite", "file:"+c.at("envapi.db"))
	if err != nil {
		return err
	}
	for _, statement := range statements {
		_, done := db.Exec(statement)
		err = errors.Join(err, done)
	}
	return errors.Join(err, db.Close())
}

// turn gives an environment another state.
func (c config) turn(p place, state string) error {
	return c.records(fmt.Sprintf(`UPDATE environments SET state = '%s' WHERE id = '%s'`, state, p.id))
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	return errors.Join(err, os.WriteFile(to, content, 0o600))
}

const strayID = "env_aaaaaaaaaaaaaaaaaaaaaaaaaa"

// TestAStartMendsWhatCheckAnnounced leaves everything that a crash can leave, and more,
// and compares what check says with the log of the start after it.
func TestAStartMendsWhatCheckAnnounced(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		var p [9]place
		for i := range p {
			p[i] = s.place(t)
		}
		packed, packedToo := p[7], p[8]
		for _, one := range []place{packed, packedToo} {
			one.sh(t, aTree)
			s.must(t, "archive_environment", one.in(nil))
		}
		p[0].open(t, object{"name": "main"})
		running := p[0].background(t, "echo began; sleep 300")
		p[0].output(t, running.ID, object{"wait_ms": 10000})
		s.kill()

		c := s.twin(t)
		archive := func(id string) string { return c.at("archives", id+".tar.zst") }
		err := errors.Join(
			c.turn(p[1], "archiving"), c.turn(p[2], "deleting"), c.turn(p[3], "resetting"), c.turn(p[4], "restoring"),
			c.turn(packed, "restoring"), os.Mkdir(c.at("workspaces", packedToo.id), 0o700),
			copyFile(archive(packed.id), archive(p[5].id)), os.Remove(c.at("workspaces", p[6].id)),
			os.Mkdir(c.at("workspaces", strayID), 0o700), copyFile(archive(packed.id), archive(strings.Replace(strayID, "a", "b", 1))),
			os.WriteFile(c.at("archives", strayID+".SOME.unfinished"), nil, 0o600), os.Mkdir(c.at("trash", strayID+".SOME"), 0o700),
			os.MkdirAll(c.at("staging", p[0].id, "t.SOME"), 0o700),
		)
		if err != nil {
			t.Fatal(err)
		}
		found := c.check(t)
		if found.code != 1 || found.Damaged != 0 || found.Environments != len(p) || found.ArchivesRead != 2 {
			t.Errorf("check says %+v", found)
		}
		again := start(t, c)
		lines := mendingsIn(again.output.String())
		for _, f := range found.Findings {
			if f.Logs != "" && !takes(&lines, f) {
				t.Errorf("%+v was announced, and is not in the log:\n%s", f, again.output)
			}
		}
		if len(lines) > 0 {
			t.Errorf("not announced were\n%s", strings.Join(lines, "\n"))
		}
		if err := eventually(func() error {
			if left := namesIn(t, c.at("trash")); len(left) > 0 {
				return fmt.Errorf("the trash has %v", left)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		again.stop(t)
		if found := c.check(t); found.Damaged+found.Mends > 0 || found.code != 0 {
			t.Errorf("after the start that mended it check says %+v", found)
		}
	})
}

// mendingsIn gives the lines of a start's log that say that something was mended.
func mendingsIn(log string) (lines []string) {
	for line := range strings.Lines(log) {
		for _, word := range append(mended, "of the service before", "was undone", "frees what") {
			if strings.Contains(line, word) {
				lines = append(lines, line)
				break
			}
		}
	}
	return lines
}

// takes takes the line of a finding out of those of a log.
func takes(lines *[]string, f checkFinding) bool {
	for i, line := range *lines {
		if strings.Contains(line, f.Logs) && (!strings.HasPrefix(f.What, "env_") || strings.Contains(line, f.What)) {
			*lines = append((*lines)[:i:i], (*lines)[i+1:]...)
			return true
		}
	}
	return false
}

// damage is what can happen to a data folder, and what check then says.
type damage struct {
	name  string
	harm  func(c config) error
	level string
	what  string // of the finding
	says  string // in it
	root  bool   // only root can bring it about
}

func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	s := start(t, config{tier: tiers()[len(tiers())-1]})
	p, other, packed := s.place(t), s.place(t), s.place(t)
	ended := p.exec(t, object{"command": "echo out"})
	packed.sh(t, aTree)
	s.must(t, "archive_environment", packed.in(nil))
	if err := eventually(func() error {
		if left := namesIn(t, filepath.Join(s.data, "trash")); len(left) > 0 {
			return fmt.Errorf("the trash has %v", left)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if out, code := s.checkup(t); code != 2 || !strings.Contains(out, "has it") || !strings.Contains(out, fmt.Sprint(s.cmd.Process.Pid)) {
		t.Errorf("while the service runs it exits with %d: %s", code, out)
	}
	s.stop(t)
	if found := s.check(t); found.code != 0 || found.Mends+found.Damaged > 0 || found.Logs != 1 || found.ArchivesRead != 1 {
		t.Errorf("of a good folder it says %+v", found)
	}
	archive, log := "archives/"+packed.id+".tar.zst", "logs/"+p.id+"/"+ended.ID
	for _, d := range []damage{
		{"an archive is cut", func(c config) error { return os.Truncate(c.at(archive), 100) }, "damaged", archive, "100 bytes", false},
		{"an archive has another bit", func(c config) error { return flip(c.at(archive)) }, "damaged", archive, "damaged", false},
		{"an archive is gone", func(c config) error { return os.Remove(c.at(archive)) }, "damaged", packed.id, "missing", false},
		{"an archive is a link", func(c config) error {
			return errors.Join(os.Remove(c.at(archive)), os.Symlink("/etc/passwd", c.at(archive)))
		}, "damaged", archive, "no file", false},
		{"a folder that was used is gone", func(c config) error { return os.RemoveAll(c.at("workspaces", p.id)) }, "damaged", p.id, "missing", false},
		{"a folder is a file", func(c config) error {
			return errors.Join(os.RemoveAll(c.at("workspaces", p.id)), os.WriteFile(c.at("workspaces", p.id), nil, 0o600))
		}, "damaged", p.id, "its folder", false},
		{"a folder is another's", func(c config) error { return os.Lchown(c.at("workspaces", p.id), 12345, 12345) }, "damaged", p.id, "12345", true},
		{"a uid is two's", func(c config) error {
			return c.records(`UPDATE environments SET host_uid = (SELECT max(host_uid) FROM environments)`)
		}, "damaged", other.id, "neither is kept", true},
		{"the records are nonsense", func(c config) error {
			return errors.Join(os.RemoveAll(c.at("envapi.db-wal")), os.WriteFile(c.at("envapi.db"), []byte(strings.Repeat("text ", 5000)), 0o600))
		}, "damaged", "envapi.db", "", false},
		{"the records are gone", func(c config) error { return os.Remove(c.at("envapi.db")) }, "damaged", "envapi.db", "missing", false},
		{"the records are newer", func(c config) error {
			return c.records(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, 1)`)
		}, "damaged", "envapi.db", "9000", false},
		{"a command of no environment", func(c config) error {
			return c.records(`UPDATE commands SET environment_id = 'env_x'`)
		}, "damaged", "envapi.db", "commands", false},
		{"a change cannot be undone", func(c config) error {
			return errors.Join(os.MkdirAll(c.at("staging", p.id), 0o700), os.WriteFile(c.at("staging", p.id, "t.X"), nil, 0o600))
		}, "damaged", "staging/" + p.id, "cannot be undone", false},
		{"output is cut", func(c config) error { return os.Truncate(c.at(log), 45) }, "note", log, "not whole", false},
		{"output is overwritten", func(c config) error { return os.WriteFile(c.at(log), []byte(strings.Repeat("x", 100)), 0o600) }, "damaged", log, "no output", false},
		{"output of nobody", func(c config) error { return os.WriteFile(c.at("logs", p.id, "cmd_x"), nil, 0o600) }, "note", "logs/" + p.id + "/cmd_x", "", false},
		{"a name of control characters", func(c config) error { return os.Mkdir(c.at("workspaces", "a\x1b[2J\nb"), 0o700) }, "note", `"workspaces/a\x1b[2J\nb"`, "", false},
		{"something else in the folder", func(c config) error { return os.WriteFile(c.at("mine"), nil, 0o600) }, "note", "mine", "", false},
	} {
		if d.root && os.Getuid() != 0 {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			c := s.twin(t)
			if err := d.harm(c); err != nil {
				t.Fatal(err)
			}
			found := c.check(t)
			d.isIn(t, found)
			if d.what == "envapi.db" && found.Mends > 0 {
				t.Errorf("of records that no start uses it says %+v", found.Findings)
			}
			if text, code := c.checkup(t); code != found.code || strings.ContainsRune(text, '\x1b') || !strings.Contains(text, d.what) {
				t.Errorf("for people it says, and exits with %d:\n%s", code, text)
			}
		})
	}
	for _, args := range [][]string{{"--no"}, {"a", "b"}, {filepath.Join(t.TempDir(), "none")}, {"/dev/null"}, {t.TempDir()}, {filepath.Dir(s.data)}} {
		if out, code := s.checkup(t, args...); code != 2 {
			t.Errorf("with %q it exits with %d: %s", args, code, out)
		}
	}
}

func (d damage) isIn(t *testing.T, found checked) {
	t.Helper()
	if want := map[string]int{"damaged": 3, "mends": 1, "note": 0}[d.level]; found.code != want {
		t.Errorf("it exits with %d, want %d", found.code, want)
	}
	for _, f := range found.Findings {
		if f.Level == d.level && f.What == d.what && strings.Contains(f.Says, d.says) && f.Then != "" {
			return
		}
	}
	t.Errorf("it says %+v", found.Findings)
}

// flip changes a bit in the middle of a file.
func flip(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	content[len(content)/2] ^= 4
	return os.WriteFile(path, content, 0o600)
}
