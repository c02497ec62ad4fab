package core_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"envapi/core"
	"envapi/internal/workspace"
)

// newFiles makes a world over real folders, with an environment in it.
func newFiles(t *testing.T, change ...func(*core.Config)) (*world, string, *workspace.Workspaces) {
	t.Helper()
	return newFilesOf(t, core.UIDRange{}, change...)
}

// newFilesOf makes one whose environments have users of their own.
func newFilesOf(t *testing.T, uids core.UIDRange, change ...func(*core.Config)) (*world, string, *workspace.Workspaces) {
	t.Helper()
	folders, err := workspace.Open(t.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, folders.Close()) })
	w := newWorld(t, func(w *world) {
		w.config.Workspaces, w.config.UIDs = folders, uids
		w.host.needsUID = uids != core.UIDRange{}
		for _, c := range change {
			c(&w.config)
		}
	})
	return w, w.create().ID, folders
}

func at(env, path string) core.FileRef { return core.FileRef{EnvironmentID: env, Path: path} }

func (w *world) write(env, path, content string) core.WrittenFile {
	w.t.Helper()
	done, err := w.WriteFile(context.Background(), alice, core.WriteFileInput{FileRef: at(env, path), Content: content})
	must(w.t, err)
	return done
}

func (w *world) text(env, path string) core.FileText {
	w.t.Helper()
	text, err := w.ReadFile(context.Background(), alice, core.ReadFileInput{FileRef: at(env, path)})
	must(w.t, err)
	return text
}

func tagOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	w, env, _ := newFiles(t)
	w.write(env, "x", "1")
	_, err := w.ReadFile(t.Context(), bob, core.ReadFileInput{FileRef: at(env, "x")})
	wantCode(t, err, core.CodeNotFound)
	_, err = w.WriteFile(t.Context(), bob, core.WriteFileInput{FileRef: at(env, "x"), Content: "2"})
	wantCode(t, err, core.CodeNotFound)
	if got := w.text(env, "x"); got.Text != "1" || got.ETag != tagOf("1") {
		t.Errorf("got %+v", got)
	}
}

func TestAWriteUnderAConditionIsMadeOnlyWhereItHolds(t *testing.T) {
	w, env, _ := newFiles(t)
	first := w.write(env, "x", "1")
	if !first.Created || first.ETag != tagOf("1") || first.Mode != "0644" {
		t.Fatalf("got %+v", first)
	}
	in := core.WriteFileInput{FileRef: at(env, "x"), Content: "2", Precondition: core.Precondition{IfMatch: `W/"` + first.ETag + `"`}}
	_, err := w.WriteFile(t.Context(), alice, in)
	if e := wantCode(t, err, core.CodeETagMismatch); e.Facts["etag"] != first.ETag {
		t.Errorf("a weak tag matches: %v", e.Facts)
	}
	in.IfMatch = `"other", "` + first.ETag + `"`
	_, err = w.WriteFile(t.Context(), alice, in)
	must(t, err)
	in.FileRef = at(env, "missing")
	_, err = w.WriteFile(t.Context(), alice, in)
	if e := wantCode(t, err, core.CodeETagMismatch); e.Facts["etag"] != nil {
		t.Errorf("got %v", e.Facts)
	}
	in.IfNoneMatch = "*"
	_, err = w.WriteFile(t.Context(), alice, in)
	wantField(t, err, "if_none_match")
}

func TestModesAreRead(t *testing.T) {
	w, env, folders := newFiles(t)
	for text, want := range map[string]os.FileMode{"0755": 0o755, "700": 0o700, "0o600": 0o600} {
		_, err := w.WriteFile(t.Context(), alice, core.WriteFileInput{FileRef: at(env, text), Mode: text})
		must(t, err)
		if info, err := os.Stat(filepath.Join(folders.Path(env), text)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got %v, %v", text, info, err)
		}
	}
	for _, text := range []string{"4755", "9", "rwx", "-1"} {
		_, err := w.WriteFile(t.Context(), alice, core.WriteFileInput{FileRef: at(env, "x"), Mode: text})
		wantField(t, err, "mode")
	}
}

func TestAppendsLoseNothing(t *testing.T) {
	w, env, _ := newFiles(t)
	together(8, func(i int) {
		_, err := w.WriteFile(t.Context(), alice, core.WriteFileInput{FileRef: at(env, "log"), Content: fmt.Sprintf("line %d\n", i), Append: true})
		if err != nil {
			t.Error(err)
		}
	})
	text := w.text(env, "log").Text
	for i := range 8 {
		if !strings.Contains(text, fmt.Sprintf("line %d\n", i)) {
			t.Errorf("line %d is missing in %q", i, text)
		}
	}
}

// Each upload fits alone, and some together: those that do not are refused, however
// many come at one time and without a length.
func TestUploadsAtOnceNeverPassTheLimit(t *testing.T) {
	w, env, folders := newFiles(t)
	limit := int64(8 << 20)
	_, err := w.UpdateEnvironment(t.Context(), alice, core.UpdateEnvironmentInput{EnvironmentRef: core.EnvironmentRef{EnvironmentID: env}, Limits: &core.EnvironmentLimits{DiskBytes: &limit}})
	must(t, err)
	var done, refused atomic.Int64
	together(50, func(i int) {
		body := io.LimitReader(rand0{}, 500_000)
		_, err := w.UploadFile(t.Context(), alice, core.UploadFileInput{FileRef: at(env, fmt.Sprint(i))}, body, -1)
		var e *core.Error
		switch {
		case err == nil:
			done.Add(1)
		case errors.As(err, &e) && e.Code == core.CodeQuotaExceeded && e.Facts["limit"] == "disk_bytes":
			refused.Add(1)
		default:
			t.Error(err)
		}
	})
	use, err := folders.Measure(t.Context(), env, "")
	must(t, err)
	// How many fit depends on how much those hold that are refused and not yet removed:
	// one, at least, since the last of them has all the room.
	if use.Bytes > limit || done.Load() < 1 || done.Load()+refused.Load() != 50 {
		t.Errorf("%d are done, %d refused, and %d bytes used of %d", done.Load(), refused.Load(), use.Bytes, limit)
	}
	// When all have ended nothing is held: the rest of the room can be taken, to the last
	// file that fits.
	for i := done.Load(); i < 16; i++ {
		_, err := w.UploadFile(t.Context(), alice, core.UploadFileInput{FileRef: at(env, fmt.Sprint("more", i))}, io.LimitReader(rand0{}, 500_000), -1)
		must(t, err)
	}
	_, err = w.UploadFile(t.Context(), alice, core.UploadFileInput{FileRef: at(env, "toomuch")}, io.LimitReader(rand0{}, 500_000), -1)
	wantCode(t, err, core.CodeQuotaExceeded)
	// What is deleted is free again.
	for i := range 50 {
		for _, name := range []string{fmt.Sprint(i), fmt.Sprint("more", i)} {
			_, err := w.DeleteFile(t.Context(), alice, core.DeleteFileInput{FileRef: at(env, name)})
			if err != nil {
				wantCode(t, err, core.CodeNotFound)
			}
		}
	}
	_, err = w.UploadFile(t.Context(), alice, core.UploadFileInput{FileRef: at(env, "x")}, io.LimitReader(rand0{}, 7<<20), 7<<20)
	must(t, err)
	_, err = w.UploadFile(t.Context(), alice, core.UploadFileInput{FileRef: at(env, "x")}, io.LimitReader(rand0{}, 7<<20), -1)
	must(t, err) // it replaces as much
	unread := &counting{}
	_, err = w.UploadFile(t.Context(), alice, core.UploadFileInput{FileRef: at(env, "y")}, unread, 7<<20)
	wantCode(t, err, core.CodeQuotaExceeded)
	if unread.reads != 0 {
		t.Error("the body was read, although its length was known to be too much")
	}
}

// rand0 is bytes without end.
type rand0 struct{}

func (rand0) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i)
	}
	return len(p), nil
}

type counting struct{ reads int }

func (c *counting) Read([]byte) (int, error) { c.reads++; return 0, io.EOF }

func TestFilesCountAgainstTheirLimit(t *testing.T) {
	w, env, _ := newFiles(t)
	limit := int64(16)
	_, err := w.UpdateEnvironment(t.Context(), alice, core.UpdateEnvironmentInput{EnvironmentRef: core.EnvironmentRef{EnvironmentID: env}, Limits: &core.EnvironmentLimits{Files: &limit}})
	must(t, err)
	made := 0
	for i := range 20 {
		_, err := w.WriteFile(t.Context(), alice, core.WriteFileInput{FileRef: at(env, fmt.Sprint(i))})
		if err == nil {
			made++
			continue
		}
		if e := wantCode(t, err, core.CodeQuotaExceeded); e.Facts["limit"] != "files" {
			t.Fatalf("got %v", e.Facts)
		}
	}
	if made < 14 || made > 16 {
		t.Errorf("%d were made", made)
	}
	_, err = w.MakeDirectory(t.Context(), alice, core.MakeDirectoryInput{FileRef: at(env, "d")})
	wantCode(t, err, core.CodeQuotaExceeded)
}

// An upload that takes its time holds up no reset, and what comes after that is not
// written into a folder that is gone.
func TestAResetDoesNotWaitForUploads(t *testing.T) {
	w, env, folders := newFiles(t)
	in, out := io.Pipe()
	failed := make(chan error)
	go func() {
		_, err := w.UploadFile(t.Context(), alice, core.UploadFileInput{FileRef: at(env, "x")}, in, -1)
		failed <- err
	}()
	_, err := out.Write([]byte("half"))
	must(t, err)
	_, err = w.ResetEnvironment(t.Context(), alice, core.EnvironmentRef{EnvironmentID: env})
	must(t, err)
	must(t, out.Close())
	wantCode(t, <-failed, core.CodeEnvironmentBusy)
	if entries, err := os.ReadDir(folders.Path(env)); err != nil || len(entries) != 0 {
		t.Errorf("after the reset there are %v, %v", entries, err)
	}
	w.write(env, "x", "1")
}

func TestAnUploadThatBreaksOffChangesNothing(t *testing.T) {
	w, env, _ := newFiles(t)
	w.write(env, "x", "old")
	broken := io.MultiReader(strings.NewReader("new"), &failing{})
	if _, err := w.UploadFile(t.Context(), alice, core.UploadFileInput{FileRef: at(env, "x")}, broken, -1); !errors.Is(err, errBroken) {
		t.Fatalf("got %v", err)
	}
	if got := w.text(env, "x").Text; got != "old" {
		t.Errorf("it holds %q", got)
	}
}

var errBroken = errors.New("broken off")

type failing struct{}

func (*failing) Read([]byte) (int, error) { return 0, errBroken }

func TestWritingIsActivity(t *testing.T) {
	w, env, _ := newFiles(t)
	ref := core.EnvironmentRef{EnvironmentID: env}
	before, err := w.GetEnvironment(t.Context(), alice, ref)
	must(t, err)
	eventually(t, "a later millisecond", func() bool { return time.Since(before.LastActivityAt.Time) > time.Millisecond })
	w.text(w.writeIn(env), "x")
	after, err := w.GetEnvironment(t.Context(), alice, ref)
	must(t, err)
	if !after.LastActivityAt.After(before.LastActivityAt.Time) {
		t.Errorf("it was active at %v, and still says %v", after.LastActivityAt, before.LastActivityAt)
	}
}

func (w *world) writeIn(env string) string { w.t.Helper(); w.write(env, "x", "1"); return env }

func TestReadingByParts(t *testing.T) {
	w, env, _ := newFiles(t)
	w.write(env, "x", "a\nbä\r\nc\n\nlast")
	for name, c := range map[string]struct {
		in   core.ReadFileInput
		want string
		next int64 // offset; -1 is none
		line int64 // to read on at; 0 is none
	}{
		"all":                 {core.ReadFileInput{}, "a\nbä\r\nc\n\nlast", -1, 0},
		"lines":               {core.ReadFileInput{StartLine: ptr[int64](2), EndLine: ptr[int64](3)}, "bä\r\nc\n", -1, 0},
		"from a line":         {core.ReadFileInput{StartLine: ptr[int64](5)}, "last", -1, 0},
		"within a character":  {core.ReadFileInput{LimitBytes: ptr[int64](4)}, "a\nb", 3, 0},
		"less than one":       {core.ReadFileInput{Offset: ptr[int64](3), LimitBytes: ptr[int64](1)}, "ä", 5, 0},
		"whole lines":         {core.ReadFileInput{LimitBytes: ptr[int64](2)}, "a\n", 2, 2},
		"at the end":          {core.ReadFileInput{Offset: ptr[int64](14)}, "", -1, 0},
		"lines, and too long": {core.ReadFileInput{StartLine: ptr[int64](2), EndLine: ptr[int64](4), LimitBytes: ptr[int64](5)}, "bä\r\n", 7, 3},
	} {
		c.in.FileRef = at(env, "x")
		got, err := w.ReadFile(t.Context(), alice, c.in)
		must(t, err)
		next, line := int64(-1), int64(0)
		if got.NextOffset != nil {
			next = *got.NextOffset
		}
		if got.NextLine != nil {
			line = *got.NextLine
		}
		if got.Text != c.want || next != c.next || line != c.line || *got.TotalLines != 5 {
			t.Errorf("%s: got %+v, next %d, line %d", name, got, next, line)
		}
	}
	_, err := w.ReadFile(t.Context(), alice, core.ReadFileInput{FileRef: at(env, "x"), StartLine: ptr[int64](6)})
	wantField(t, err, "start_line")
}

func TestWhatAFileIsIsTold(t *testing.T) {
	w, env, folders := newFiles(t)
	for content, want := range map[string]core.FileText{
		"\xef\xbb\xbfa\r\n":        {Charset: "utf-8", BOM: true, LineEnding: "crlf", Encoding: "utf-8"},
		"\xff\xfea\x00\n\x00":      {Charset: "utf-16le", BOM: true, LineEnding: "lf", Encoding: "base64"},
		"a\nb\r\n":                 {Charset: "utf-8", LineEnding: "mixed", Encoding: "utf-8"},
		"\x00\x01":                 {Charset: "binary", LineEnding: "none", Encoding: "utf-8"},
		"caf\xe9":                  {Charset: "binary", LineEnding: "none", Encoding: "base64"},
		"":                         {Charset: "utf-8", LineEnding: "none", Encoding: "utf-8"},
		strings.Repeat("é", 1<<16): {Charset: "utf-8", LineEnding: "none", Encoding: "utf-8"},
	} {
		must(t, os.WriteFile(filepath.Join(folders.Path(env), "x"), []byte(content), 0o600))
		got := w.text(env, "x")
		if got.Charset != want.Charset || got.BOM != want.BOM || got.LineEnding != want.LineEnding || got.Encoding != want.Encoding {
			t.Errorf("%.20q: got %+v", content, got)
		}
	}
}

func TestEditsAreMadeOnWhatIsThere(t *testing.T) {
	w, env, _ := newFiles(t)
	tag := w.write(env, "x", "a = 1\nb = 1\n").ETag
	in := core.EditFileInput{FileRef: at(env, "x"), Edits: []core.Edit{{Old: "= 1", New: "= 2"}}}
	_, err := w.EditFile(t.Context(), alice, in)
	if e := wantCode(t, err, core.CodeEditAmbiguous); fmt.Sprint(e.Facts["matches"]) != "[map[line:1] map[line:2]]" {
		t.Errorf("got %v", e.Facts)
	}
	in.Edits, in.DryRun = []core.Edit{{Old: "b = 1", New: "b = 2"}}, true
	dry, err := w.EditFile(t.Context(), alice, in)
	must(t, err)
	if !strings.Contains(dry.Diff, "+b = 2") || dry.ETag != tagOf("a = 1\nb = 2\n") || w.text(env, "x").ETag != tag {
		t.Errorf("got %+v", dry)
	}
	in.DryRun = false
	together(2, func(i int) { // on different lines both are made
		in := in
		if i == 1 {
			in.Edits = []core.Edit{{Old: "a = 1", New: "a = 2"}}
		}
		if _, err := w.EditFile(t.Context(), alice, in); err != nil {
			t.Error(err)
		}
	})
	if got := w.text(env, "x").Text; got != "a = 2\nb = 2\n" {
		t.Errorf("it holds %q", got)
	}
	in.IfMatch = tag
	_, err = w.EditFile(t.Context(), alice, in)
	wantCode(t, err, core.CodeETagMismatch)
}

func TestAPatchIsAppliedWholeOrNotAtAll(t *testing.T) {
	w, env, _ := newFiles(t)
	w.write(env, "d/a", "1\n")
	w.write(env, "d/b", "1\n")
	const one = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"
	in := core.ApplyPatchInput{EnvironmentID: env, Cwd: "d", Patch: one + "--- a/b\n+++ b/b\n@@ -1 +1 @@\n-3\n+4\n"}
	_, err := w.ApplyPatch(t.Context(), alice, in)
	if e := wantCode(t, err, core.CodePatchRejected); e.Facts["file"] != "b" || e.Facts["hunk"] != 1 {
		t.Errorf("got %v", e.Facts)
	}
	if got := w.text(env, "d/a").Text; got != "1\n" {
		t.Errorf("the first file holds %q", got)
	}
	in.Patch = one + "diff --git a/b b/c\nold mode 100644\nnew mode 100755\nsimilarity index 100%\nrename from b\nrename to c\n"
	in.IfMatch = map[string]string{"a": "other"}
	_, err = w.ApplyPatch(t.Context(), alice, in)
	wantCode(t, err, core.CodeETagMismatch)
	in.IfMatch = map[string]string{"z": "other"}
	_, err = w.ApplyPatch(t.Context(), alice, in)
	wantField(t, err, "if_match")
	in.IfMatch = map[string]string{"a": tagOf("1\n")}
	done, err := w.ApplyPatch(t.Context(), alice, in)
	must(t, err)
	if done.AlreadyApplied || done.Files[0].Path != "d/a" || done.Files[0].ETag != tagOf("2\n") || done.Files[1].From != "d/b" || done.Files[1].Action != "renamed" {
		t.Errorf("got %+v", done)
	}
	entry, err := w.StatFile(t.Context(), alice, core.StatFileInput{FileRef: at(env, "d/c")})
	must(t, err)
	if entry.Mode != "0755" {
		t.Errorf("it is %+v", entry)
	}
	in.IfMatch = nil
	again, err := w.ApplyPatch(t.Context(), alice, in)
	must(t, err)
	if !again.AlreadyApplied || again.Files[0].Action != "unchanged" {
		t.Errorf("got %+v", again)
	}
	in.Patch, in.Cwd = "--- a/../../x\n+++ b/../../x\n@@ -0,0 +1 @@\n+1\n", ""
	_, err = w.ApplyPatch(t.Context(), alice, in)
	wantCode(t, err, core.CodePathOutside)
}

func TestAPatchNamesAFileInOneWayAndRefusalsArePlain(t *testing.T) {
	w, env, _ := newFiles(t)
	w.write(env, "f", "1\n2\n")
	_, err := w.ApplyPatch(t.Context(), alice, core.ApplyPatchInput{EnvironmentID: env, Patch: "--- f\n+++ f\n@@ -1 +1 @@\n-1\n+a\n--- ./f\n+++ ./f\n@@ -2 +2 @@\n-2\n+b\n"})
	wantCode(t, err, core.CodePatchRejected)
	_, err = w.ApplyPatch(t.Context(), alice, core.ApplyPatchInput{EnvironmentID: env, Patch: "--- \x1b[2Jx\n+++ \x1b[2Jx\n@@ -1 +1 @@\n-1\n+a\n"})
	if e := wantCode(t, err, core.CodePatchRejected); strings.Contains(e.Detail, "\x1b") {
		t.Errorf("it says %q", e.Detail)
	}
	if got := w.text(env, "f").Text; got != "1\n2\n" {
		t.Errorf("it holds %q", got)
	}
}

func TestAModeThatIsThereAlreadyIsNoChange(t *testing.T) {
	w, env, _ := newFiles(t)
	w.write(env, "x", "1\n")
	in := core.ApplyPatchInput{EnvironmentID: env, Patch: "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"}
	for _, want := range []bool{false, true} {
		done, err := w.ApplyPatch(t.Context(), alice, in)
		must(t, err)
		if done.AlreadyApplied != want {
			t.Errorf("got %+v", done)
		}
	}
}

func TestPagesGoOnWhereTheyEnded(t *testing.T) {
	w, env, _ := newFiles(t)
	for i := range 5 {
		w.write(env, fmt.Sprintf("d/%d", i), "")
	}
	in := core.ListFilesInput{DirectoryRef: core.DirectoryRef{EnvironmentID: env}, Recursive: true, Limit: 2}
	var seen []string
	for {
		page, err := w.ListFiles(t.Context(), alice, in)
		must(t, err)
		for _, entry := range page.Items {
			seen = append(seen, entry.Path)
		}
		if in.Cursor = page.NextCursor; in.Cursor == "" {
			break
		}
		other := in
		other.Hidden = true
		_, err = w.ListFiles(t.Context(), alice, other)
		wantField(t, err, "cursor")
	}
	if got := strings.Join(seen, " "); got != "d d/0 d/1 d/2 d/3 d/4" {
		t.Errorf("got %s", got)
	}
}

func TestAnArchiveComesBackAsItWas(t *testing.T) {
	w, env, _ := newFiles(t)
	w.write(env, "d/x", "1")
	var archive bytes.Buffer
	here := core.DirectoryRef{EnvironmentID: env, Path: "d"}
	_, err := w.ExportFiles(t.Context(), alice, core.ExportFilesInput{DirectoryRef: here, Compression: "zstd"}, &archive)
	must(t, err)
	here.Path = "e"
	done, err := w.ImportFiles(t.Context(), alice, core.ImportFilesInput{DirectoryRef: here}, bytes.NewReader(archive.Bytes()), -1)
	must(t, err)
	if done.Files != 1 || w.text(env, "e/x").Text != "1" {
		t.Errorf("got %+v", done)
	}
	_, err = w.ImportFiles(t.Context(), alice, core.ImportFilesInput{DirectoryRef: here}, bytes.NewReader(archive.Bytes()), -1)
	wantCode(t, err, core.CodeAlreadyExists)
	w.write(env, "f", "the room is free again")
}

func TestCopiesAndMovesSayWhatTheyAreAbout(t *testing.T) {
	w, env, _ := newFiles(t)
	tag := w.write(env, "a", "1").ETag
	in := core.CopyFileInput{EnvironmentID: env, Source: "a", Destination: "b"}
	copied, err := w.CopyFile(t.Context(), alice, in)
	must(t, err)
	in.Source, in.Destination = "b", "c"
	moved, err := w.MoveFile(t.Context(), alice, in)
	must(t, err)
	if copied.ETag != tag || moved.ETag != tag {
		t.Errorf("the tags are %q and %q, want %q", copied.ETag, moved.ETag, tag)
	}
	_, err = w.MoveFile(t.Context(), alice, core.CopyFileInput{EnvironmentID: env, Source: ".", Destination: "x"})
	if e := core.AsError(err); e.Facts["field"] != "source" {
		t.Errorf("got %v", e.Facts)
	}
}

func TestADirectoryThatDoesNotFitIsNotCopied(t *testing.T) {
	w, env, _ := newFiles(t)
	limit := int64(4 << 20)
	_, err := w.UpdateEnvironment(t.Context(), alice, core.UpdateEnvironmentInput{EnvironmentRef: core.EnvironmentRef{EnvironmentID: env}, Limits: &core.EnvironmentLimits{DiskBytes: &limit}})
	must(t, err)
	w.write(env, "d/x", strings.Repeat("x", 3<<20))
	in := core.CopyFileInput{EnvironmentID: env, Source: "d", Destination: "e"}
	_, err = w.CopyFile(t.Context(), alice, in)
	wantCode(t, err, core.CodeQuotaExceeded)
	in.Source, in.Destination = "d/x", "y"
	_, err = w.CopyFile(t.Context(), alice, in)
	wantCode(t, err, core.CodeQuotaExceeded)
	_, err = w.MoveFile(t.Context(), alice, in)
	must(t, err)
}

func TestChangesAreTold(t *testing.T) {
	w, env, _ := newFiles(t)
	watch, err := w.WatchFiles(t.Context(), alice, core.WatchFilesInput{DirectoryRef: core.DirectoryRef{EnvironmentID: env}})
	must(t, err)
	w.write(env, "x", "1")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	events, err := watch.Next(ctx)
	must(t, err)
	if events[0].Path != "x" || events[0].Type != core.FileCreated {
		t.Errorf("got %+v", events)
	}
	must(t, watch.Close())
}
