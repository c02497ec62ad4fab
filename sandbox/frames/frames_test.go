package frames

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"envapi/sandbox/inotify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func folder(t *testing.T) *Folder {
	t.Helper()
	path := t.TempDir()
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(Place{Path: path, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func frame(t *testing.T, f *Folder, script string, o Output) *Frame {
	t.Helper()
	fr, err := f.New(script, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		fr.Remove()
		fr.CloseAll()
	})
	return fr
}

func TestOnlyTheRecordIsOne(t *testing.T) {
	fr := &Frame{nonce: "N", again: "M"}
	for name, want := range map[string]int{"N.0": 0, "N.7": 7, "N.255": 255, "M.130": 130} {
		if code, ok := fr.Record(name); !ok || code != want {
			t.Errorf("%q: got %d, %v", name, code, ok)
		}
	}
	for _, name := range []string{"", "N", "N.", "N.256", "N.-1", "N.+1", "N.01", "N. 1", "N.1 ", "N.0x1", "n.1", "XN.1", "N.1.1", "M.0", "M.1", "M.131", ".1"} {
		if code, ok := fr.Record(name); ok {
			t.Errorf("%q is taken for %d", name, code)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add("N.255")
	f.Add("N.0255")
	f.Fuzz(func(t *testing.T, name string) {
		code, ok := parseRecord(name, "N")
		if ok && (code < 0 || code > maxCode || name != "N."+strconv.Itoa(code)) {
			t.Errorf("%q is taken for %d", name, code)
		}
	})
}

func TestNoTwoFramesHaveANonce(t *testing.T) {
	f := folder(t)
	seen := map[string]bool{}
	for range 20 {
		fr := frame(t, f, "", Apart)
		for _, nonce := range []string{fr.nonce, fr.again} {
			if len(nonce) < 26 || seen[nonce] { // 26 characters of 32 are 130 bits
				t.Errorf("got %q", nonce)
			}
			seen[nonce] = true
		}
	}
}

// status gives the line for a code.
func status(t *testing.T, fr *Frame, code int) string {
	t.Helper()
	line, err := fr.StatusLine(code)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// TestBashUnderstandsTheLines: a real bash reads them, and what it does is what
// they are for.
func TestBashUnderstandsTheLines(t *testing.T) {
	f := folder(t)
	for _, code := range []int{0, 1, 2, 3, 42, 126, 127, 128, 130, 254, 255} {
		fr := frame(t, f, "[ $? = "+strconv.Itoa(code)+" ] && (exit "+strconv.Itoa(255-code)+")", OnTerminal)
		line := strings.ReplaceAll(fr.ScriptLine(OnTerminal), "/dev/tty", os.DevNull) // a test has none
		cmd := exec.Command("bash", "-c", ReapLine+status(t, fr, code)+line+fr.RecordLine())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("got %v %s", err, out)
		}
		if got, ok := fr.Find(); !ok || got != 255-code {
			t.Errorf("got %d, %v, want %d", got, ok, 255-code)
		}
		fr.Remove(255 - code)
	}
	if entries, err := os.ReadDir(filepath.Join(f.place.Path, f.name)); err != nil || len(entries) != 0 {
		t.Errorf("left are %v, %v", entries, err)
	}
}

func TestStatusLinesEndNoShellAndStartNothing(t *testing.T) {
	f := folder(t)
	for _, code := range []int{0, 1, 2, 255} {
		line := status(t, frame(t, f, "", OnTerminal), code)
		const begin = "trap 'echo trapped' ERR; trap 'echo a child' CHLD; set -e; alias return=false .=false;\n"
		out, err := exec.Command("bash", "-c", begin+line+"echo $?").Output()
		if want := strconv.Itoa(code) + "\n"; err != nil || string(out) != want {
			t.Errorf("%q: got %q, %v", line, out, err)
		}
	}
}

func TestWhatIsOutsideOfTheScript(t *testing.T) {
	fr := &Frame{folder: &Folder{place: Place{Path: "/it's"}, name: ".f"}, script: "S"}
	for written, want := range map[string]string{
		"":                               "",
		"bye\n":                          "bye\n",
		"+ . '/it'\\''s/.f/S'\nbye":      "bye",
		"x\n+ . /it's/.f/S\nbye\n+ echo": "bye\n+ echo",
		"DEBUG \\. '/it'\\''s/.f/S' </dev/tty\n+ . /it's/.f/S\n": "",
		"+ . /it's/.f/S": "",
		"/it's/.f/S\n":   "/it's/.f/S\n",
		". /it's/.f/T\n": ". /it's/.f/T\n",
	} {
		if got := string(fr.Outside([]byte(written))); got != want {
			t.Errorf("%q: got %q, want %q", written, got, want)
		}
	}
}

func TestAPathIsAWord(t *testing.T) {
	for _, path := range []string{"/a b", "/it's", "/$x`id`\"\\", "/*?[", "/!x"} {
		out, err := exec.Command("bash", "-c", "printf %s "+quote(path)).Output()
		if err != nil || string(out) != path {
			t.Errorf("%q: got %q, %v", path, out, err)
		}
	}
}

func TestALongPathIsRefused(t *testing.T) {
	f := folder(t)
	if err := f.Fit(); err != nil {
		t.Error(err)
	}
	for _, path := range []string{strings.Repeat("/x", 200), "/a\nb"} {
		long := &Folder{place: Place{Path: path}, name: f.name}
		if err := long.Fit(); !errors.Is(err, errLong) {
			t.Errorf("%q: got %v", path, err)
		}
	}
}

// TestWhatIsNoPipeIsNotOpened: a process inside may be quick enough to put
// something else where a pipe was just made.
func TestWhatIsNoPipeIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "pipe")
	if err := errors.Join(unix.Mkfifo(outside, 0o600), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
		os.Symlink(outside, filepath.Join(dir, "link")), os.Mkdir(filepath.Join(dir, "folder"), 0o700)); err != nil {
		t.Fatal(err)
	}
	parent, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Close()
	for _, name := range []string{"file", "link", "folder", "nosuch", "../" + filepath.Base(filepath.Dir(outside)) + "/pipe"} {
		if f, err := openFIFO(int(parent.Fd()), name, unix.O_RDONLY); err == nil {
			t.Errorf("%s was opened", name)
			_ = f.Close()
		}
	}
}

func TestPipesThatWereSwappedAreNoPair(t *testing.T) {
	f := folder(t)
	one, other := frame(t, f, "", Merged).Pipe(0), frame(t, f, "", Merged).Pipe(0)
	if err := sameFile(one.Read, other.keeper); !errors.Is(err, errSwapped) {
		t.Errorf("got %v", err)
	}
	if err := sameFile(one.Read, one.keeper); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestTheScriptReplacesNothing(t *testing.T) {
	f := folder(t)
	fr := &Frame{folder: f, script: "there"}
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.Symlink(victim, filepath.Join(f.place.Path, f.name, "there")); err != nil {
		t.Fatal(err)
	}
	if err := fr.writeScript("x"); !errors.Is(err, unix.EEXIST) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(victim); err == nil {
		t.Error("it was written through a link")
	}
	fr.remove("there")
}

func TestItIsSeenThatTheScriptIsOpened(t *testing.T) {
	w, err := inotify.New()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	f := folder(t)
	fr := frame(t, f, "x", OnTerminal)
	opened := make(chan struct{})
	if err := fr.Watch(w, func() { close(opened) }); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(f.place.Path, f.name, fr.script)); err != nil || string(content) != "x" {
		t.Errorf("got %q, %v", content, err)
	}
	<-opened
}

// TestItIsSeenWithoutAWatch: the kernel may have no watch to give.
func TestItIsSeenWithoutAWatch(t *testing.T) {
	f := folder(t)
	for _, script := range []string{"", "x"} {
		fr := frame(t, f, script, OnTerminal)
		if err := fr.Watch(nil, func() { t.Error("it is told") }); err != nil {
			t.Fatal(err)
		}
		if fr.WasOpened() {
			t.Error("it was not opened")
		}
		if out, err := exec.Command("bash", "-c", ". "+quote(f.path(fr.script))+"; :").CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		if !fr.WasOpened() {
			t.Errorf("it was opened: %q", script)
		}
	}
}

func TestAWatchedScriptIsNotAskedFor(t *testing.T) {
	if fr := frame(t, folder(t), "x", OnTerminal); fr.WasOpened() {
		t.Error("nothing was asked")
	}
}

func TestAFolderIsMended(t *testing.T) {
	f := folder(t)
	path := func() string { return filepath.Join(f.place.Path, f.name) }
	for name, harm := range map[string]func() error{
		"closed":        func() error { return os.Chmod(path(), 0) },
		"removed":       func() error { return os.Remove(path()) },
		"moved":         func() error { return os.Rename(path(), path()+"-moved") },
		"replaced":      func() error { return errors.Join(os.Remove(path()), os.Symlink("/tmp", path())) },
		"its is closed": func() error { return errors.Join(os.Chmod(path(), 0), os.Chmod(f.place.Path, 0)) },
	} {
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		fr, err := f.New("x", Apart)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if info, err := os.Lstat(path()); err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: got %v, %v", name, info, err)
		}
		fr.Remove()
		fr.CloseAll()
	}
}
