package workspace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"envapi/core"
	"envapi/internal/random"
)

// modelUID owns the folders of the model's environments where the test is root.
const modelUID = 64321

// fileModel is what must be true of a folder after any sequence of operations.
type fileModel struct {
	t    *testing.T
	path string // of the folder on the host
	uid  int
	tree core.FileTree
	root *modelNode
}

// TestAnySequenceOfFileOperationsIsAsTheModelSays: after each the folder holds just
// what a plain model holds, and what failed failed for the model's reason.
func TestAnySequenceOfFileOperationsIsAsTheModelSays(t *testing.T) {
	w := open(t, t.TempDir())
	n := 0
	random.Check(t, func(rt *rapid.T) {
		n++
		m := newFileModel(t, w, n)
		defer func() {
			must(t, m.tree.Close())
			must(t, w.Remove(t.Context(), testID(n), nil))
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"write":     m.write,
			"commit":    m.commit,
			"directory": m.makeDirectory,
			"remove":    m.remove,
			"copy":      m.copy,
			"move":      m.move,
			"read":      m.read,
			"stat":      m.stat,
			"link":      m.link,
			"list":      m.list,
			"search":    m.search,
			"archive":   m.archive,
			"":          m.check,
		})
	})
}

func newFileModel(t *testing.T, w *Workspaces, n int) *fileModel {
	t.Helper()
	uid := 0
	if os.Geteuid() == 0 {
		uid = modelUID
	}
	must(t, w.Create(t.Context(), testID(n), uid))
	tree, err := w.Files(testID(n), uid, "")
	must(t, err)
	return &fileModel{t: t, path: w.Path(testID(n)), uid: uid, tree: tree, root: newModelRoot()}
}

func (m *fileModel) check(rt *rapid.T) {
	got, err := describeFolder(m.path, "")
	if err != nil {
		rt.Fatal(err)
	}
	if want := m.root.describe(); !slices.Equal(got, want) {
		rt.Fatalf("there is\n%s\nand there should be\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

var (
	modelNames = []string{"a", "a", "b", "b", "c", "l", "ä", " \n%?", "-x"}
	modelWays  = []string{"..", ".", ""}
	modelModes = []fs.FileMode{0o644, 0o600, 0o755, 0o444}
)

// drawPath gives the path of something that is there, or any other.
func (m *fileModel) drawPath(rt *rapid.T, label string) string {
	var all []string
	m.root.each("", func(path string, _ *modelNode) { all = append(all, path) })
	if len(all) > 0 && rapid.Bool().Draw(rt, label+" is there") {
		return rapid.SampledFrom(all).Draw(rt, label)
	}
	var parts []string
	for range rapid.IntRange(1, 4).Draw(rt, label+" length") {
		if rapid.IntRange(0, 9).Draw(rt, label+" way") == 0 {
			parts = append(parts, rapid.SampledFrom(modelWays).Draw(rt, label+" part"))
		} else {
			parts = append(parts, rapid.SampledFrom(modelNames).Draw(rt, label+" part"))
		}
	}
	path := strings.TrimLeft(strings.Join(parts, "/"), "/")
	for strings.HasSuffix(path, "/.") { // the model has no word for what is to be made as the directory that it is in itself
		path = strings.TrimSuffix(path, "/.")
	}
	switch rapid.IntRange(0, 19).Draw(rt, label+" form") {
	case 0:
		path = "/workspace/" + path
	case 1:
		path = "/etc/" + path
	case 2, 3:
		path += "/"
	}
	if path == "" {
		return "."
	}
	return path
}

func drawContent(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"", "x", "yy\n"}).Draw(rt, "content")
}

func (m *fileModel) drawCondition(rt *rapid.T, at *modelPlace) core.Condition {
	switch rapid.IntRange(0, 11).Draw(rt, "condition") {
	case 0:
		return core.Condition{Absent: true}
	case 1:
		return core.Condition{Match: []string{"*"}}
	case 2:
		return core.Condition{Match: []string{"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}
	case 3, 4:
		if at != nil && at.node.is(core.TypeFile) {
			return core.Condition{Match: []string{"another", at.node.tag()}}
		}
	}
	return core.Condition{}
}

// judge says whether a condition holds of what stands at a place.
func judge(at *modelPlace, c core.Condition) core.Code {
	regular := at.node.is(core.TypeFile)
	switch {
	case c.Match == nil && !c.Absent, at.node == nil && c.Match == nil:
		return ""
	case at.node == nil:
		return core.CodeETagMismatch
	case c.Match != nil && c.Match[0] == "*":
		return ""
	case c.Absent, regular && !slices.Contains(c.Match, at.node.tag()):
		return core.CodeETagMismatch
	case at.node.is(core.TypeDirectory):
		return core.CodeIsADirectory
	case !regular:
		return core.CodeNotRegular
	}
	return ""
}

// same ends the test where an operation ended in another way than in the model.
func same(rt *rapid.T, what string, err error, want core.Code) {
	rt.Helper()
	var e *core.Error
	if err == nil && want == "" || errors.As(err, &e) && e.Code == want {
		return
	}
	rt.Fatalf("%s: got %v, want %q", what, err, want)
}

func (m *fileModel) stage(rt *rapid.T, content string) core.Staged {
	s, err := m.tree.Stage(m.t.Context(), strings.NewReader(content), -1)
	if err != nil {
		rt.Fatal(err)
	}
	return s
}

// modelChange is a change and where it leads in the model.
type modelChange struct {
	core.Change
	content string
	at      *modelPlace
	code    core.Code // of looking for it
}

func (m *fileModel) drawChange(rt *rapid.T, parents bool) *modelChange {
	c := &modelChange{}
	c.Path = m.drawPath(rt, "path")
	c.Literal = rapid.IntRange(0, 4).Draw(rt, "literal") == 0
	c.Parents = parents && rapid.Bool().Draw(rt, "parents")
	take := rapid.IntRange(0, 5).Draw(rt, "take") == 0
	c.at, c.code = m.root.locate(c.Path, !c.Literal, c.Parents && !take)
	c.If = m.drawCondition(rt, c.at)
	if take {
		return c
	}
	c.content = drawContent(rt)
	if rapid.Bool().Draw(rt, "with mode") {
		mode := rapid.SampledFrom(modelModes).Draw(rt, "mode")
		c.Mode = &mode
	}
	c.Put = m.stage(rt, c.content)
	return c
}

// allow says why a change is refused; "" where it is not.
func (c *modelChange) allow() core.Code {
	n := c.at.node
	if code := judge(c.at, c.If); code != "" {
		return code
	}
	switch {
	case n == nil && c.Put == nil:
		return core.CodeNotFound
	case n.is(core.TypeDirectory), n == nil && strings.HasSuffix(c.Path, "/"):
		return core.CodeIsADirectory
	case c.Put != nil && n.is(core.TypeFile) && n.mode&0o200 == 0:
		return core.CodePermissionDenied
	}
	return ""
}

func (c *modelChange) apply() {
	if c.Put == nil {
		delete(c.at.dir.kids, c.at.name)
		return
	}
	n := &modelNode{kind: core.TypeFile, mode: 0o644, content: c.content}
	if c.at.node.is(core.TypeFile) {
		n.mode = c.at.node.mode
	}
	if c.Mode != nil {
		n.mode = *c.Mode
	}
	c.at.put(n)
}

func (m *fileModel) write(rt *rapid.T) {
	c := m.drawChange(rt, true)
	code := c.code
	if code == "" {
		code = c.allow()
	}
	created := code == "" && c.at.node == nil
	done, err := m.tree.Commit(m.t.Context(), []core.Change{c.Change})
	same(rt, "write "+c.Path, err, code)
	if code != "" {
		return
	}
	if c.apply(); c.Put != nil && (done[0].Created != created || done[0].Info.ETag != c.at.dir.kids[c.at.name].tag()) {
		rt.Fatalf("write %s: got %+v", c.Path, done)
	}
}

// commit makes several changes or none.
func (m *fileModel) commit(rt *rapid.T) {
	var all []*modelChange
	var changes []core.Change
	want := core.Code("")
	seen := map[*modelNode][]string{}
	for range 3 {
		c := m.drawChange(rt, false)
		all, changes = append(all, c), append(changes, c.Change)
		if want != "" {
			continue
		}
		if want = c.code; want != "" {
			continue
		}
		if slices.Contains(seen[c.at.dir], c.at.name) {
			want = core.CodeInvalidArgument
		}
		seen[c.at.dir] = append(seen[c.at.dir], c.at.name)
	}
	for _, c := range all {
		if want == "" {
			want = c.allow()
		}
	}
	_, err := m.tree.Commit(m.t.Context(), changes)
	same(rt, "commit", err, want)
	if want == "" {
		for _, c := range all {
			c.apply()
		}
	}
}

func (m *fileModel) makeDirectory(rt *rapid.T) {
	path, parents := m.drawPath(rt, "path"), rapid.Bool().Draw(rt, "parents")
	at, code := m.root.locate(trimmed(path), false, parents)
	made := false
	if code == "" && at.node != nil {
		end := at
		if parents && at.node.is(core.TypeSymlink) {
			end, code = m.root.locate(path, true, false)
		}
		if code == "" && (!parents || !end.node.is(core.TypeDirectory)) {
			code = core.CodeAlreadyExists
		}
	} else if code == "" {
		made = true
		at.put(newModelDirectory(nil))
	}
	_, got, err := m.tree.MakeDirectory(m.t.Context(), path, parents)
	same(rt, "make directory "+path, err, code)
	if got != made {
		rt.Fatalf("make directory %s: made: %t", path, got)
	}
}

func trimmed(path string) string {
	if short := strings.TrimRight(path, "/"); short != "" {
		return short
	}
	return path
}

// itself finds what a path names, which is never what a link at its end leads to.
func (m *fileModel) itself(path string, missing bool) (*modelPlace, core.Code) {
	at, code := m.root.locate(trimmed(path), false, missing)
	if code == "" && trimmed(path) != path && at.node != nil && !at.node.is(core.TypeDirectory) {
		return nil, core.CodeNotADirectory
	}
	return at, code
}

func (m *fileModel) remove(rt *rapid.T) {
	path, recursive := m.drawPath(rt, "path"), rapid.Bool().Draw(rt, "recursive")
	at, code := m.itself(path, false)
	c := m.drawCondition(rt, at)
	if code == "" && at.name == "." {
		code = core.CodeInvalidArgument
	}
	if code == "" {
		code = judge(at, c)
	}
	switch {
	case code != "":
	case at.node == nil:
		code = core.CodeNotFound
	case len(at.node.kids) > 0 && !recursive:
		code = core.CodeNotEmpty
	default:
		delete(at.dir.kids, at.name)
	}
	same(rt, "remove "+path, m.tree.Remove(m.t.Context(), path, recursive, c), code)
}

// modelPair is a copy or a move.
type modelPair struct {
	source, destination string
	from, to            *modelPlace
	options             core.CopyOptions
	code                core.Code
}

func (p *modelPair) isSame() bool {
	return p.from.dir == p.to.dir && p.from.name == p.to.name && len(p.to.missing) == 0
}

func (m *fileModel) drawPair(rt *rapid.T, moves bool) *modelPair {
	p := &modelPair{source: m.drawPath(rt, "source"), destination: m.drawPath(rt, "destination")}
	p.options = core.CopyOptions{
		Overwrite: rapid.Bool().Draw(rt, "overwrite"), Parents: rapid.Bool().Draw(rt, "parents"),
		Limit: 1 << 20, Files: 1 << 10,
	}
	if p.from, p.code = m.itself(p.source, false); p.code == "" {
		p.to, p.code = m.itself(p.destination, p.options.Parents)
	}
	p.options.If = m.drawCondition(rt, p.to)
	if p.code == "" {
		p.code = p.allow(moves)
	}
	return p
}

func (p *modelPair) allow(moves bool) core.Code {
	switch {
	case moves && p.from.name == ".":
		return core.CodeInvalidArgument
	case p.from.node == nil:
		return core.CodeNotFound
	}
	if code := judge(p.to, p.options.If); code != "" {
		return code
	}
	directory, onto := p.from.node.is(core.TypeDirectory), p.to.node.is(core.TypeDirectory)
	switch {
	case p.isSame() && moves:
		return ""
	case p.isSame(), directory && p.from.node.holds(p.to.dir):
		return core.CodeInvalidArgument
	case !onto && !directory && strings.HasSuffix(p.destination, "/"):
		return core.CodeNotADirectory
	case p.to.node == nil:
		return ""
	case !p.options.Overwrite, onto && directory:
		return core.CodeAlreadyExists
	case onto:
		return core.CodeIsADirectory
	case directory:
		return core.CodeNotADirectory
	case p.to.node.is(core.TypeFile) && p.to.node.mode&0o200 == 0:
		return core.CodePermissionDenied
	}
	return ""
}

func (m *fileModel) copy(rt *rapid.T) {
	p := m.drawPair(rt, false)
	_, skipped, err := m.tree.Copy(m.t.Context(), p.source, p.destination, p.options)
	same(rt, "copy "+p.source+" to "+p.destination, err, p.code)
	if len(skipped) > 0 {
		rt.Fatalf("copy %s: skipped %q", p.source, skipped)
	}
	if p.code == "" {
		p.to.put(p.from.node.copy(nil))
	}
}

func (m *fileModel) move(rt *rapid.T) {
	p := m.drawPair(rt, true)
	_, err := m.tree.Move(m.t.Context(), p.source, p.destination, p.options)
	same(rt, "move "+p.source+" to "+p.destination, err, p.code)
	if p.code == "" && !p.isSame() {
		delete(p.from.dir.kids, p.from.name)
		p.to.put(p.from.node)
	}
}

func (m *fileModel) read(rt *rapid.T) {
	path := m.drawPath(rt, "path")
	at, code := m.root.locate(path, true, false)
	switch {
	case code != "":
	case at.node == nil:
		code = core.CodeNotFound
	case at.node.is(core.TypeDirectory):
		code = core.CodeIsADirectory
	}
	f, err := m.tree.Open(m.t.Context(), path)
	same(rt, "read "+path, err, code)
	if err != nil {
		return
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	tag, tagErr := f.ETag(m.t.Context(), rapid.Bool().Draw(rt, "fresh"))
	if err != nil || tagErr != nil || string(text) != at.node.content || tag != at.node.tag() {
		rt.Fatalf("read %s: got %q, %s, %v, %v", path, text, tag, err, tagErr)
	}
}

func (m *fileModel) stat(rt *rapid.T) {
	path := m.drawPath(rt, "path")
	at, code := m.root.locate(path, false, false)
	if code == "" && at.node == nil {
		code = core.CodeNotFound
	}
	info, err := m.tree.Stat(m.t.Context(), path, true)
	same(rt, "stat "+path, err, code)
	if err != nil {
		return
	}
	n := at.node
	want := core.FileInfo{Path: info.Path, Type: n.kind, Size: info.Size, Mode: n.mode, ModifiedAt: info.ModifiedAt}
	switch n.kind {
	case core.TypeFile:
		want.Size, want.ETag = int64(len(n.content)), n.tag()
	case core.TypeSymlink:
		want.Size, want.LinkTarget, want.Mode = int64(len(n.content)), n.content, 0o777
	}
	if info != want {
		rt.Fatalf("stat %s: got %+v, want %+v", path, info, want)
	}
}

// link makes a link as a program inside would: the API makes none.
func (m *fileModel) link(rt *rapid.T) {
	path, target := m.drawPath(rt, "path"), m.drawPath(rt, "target")
	at, code := m.root.locate(path, false, false)
	if code != "" || at.node != nil {
		rt.Skip("nothing to link at")
	}
	dir := m.path
	for n := at.dir; n.up != nil; n = n.up {
		for name, kid := range n.up.kids {
			if kid == n {
				dir = strings.Replace(dir, m.path, filepath.Join(m.path, name), 1)
			}
		}
	}
	if err := os.Symlink(target, filepath.Join(dir, at.name)); err != nil {
		rt.Fatal(err)
	}
	// A program inside makes it his own: others may give it no second name (proc(5),
	// protected_hardlinks).
	var st unix.Stat_t
	if err := errors.Join(unix.Lstat(m.path, &st), os.Lchown(filepath.Join(dir, at.name), int(st.Uid), int(st.Gid))); err != nil {
		rt.Fatal(err)
	}
	at.put(&modelNode{kind: core.TypeSymlink, mode: 0o777, content: target})
}

// list goes through all of the folder page by page.
func (m *fileModel) list(rt *rapid.T) {
	q := core.ListQuery{Hidden: true, Ignored: true, Limit: rapid.IntRange(1, 5).Draw(rt, "limit")}
	var got []string
	for {
		page, err := m.tree.List(m.t.Context(), q)
		if err != nil {
			rt.Fatal(err)
		}
		for _, e := range page.Entries {
			got = append(got, string(e.Type)+" "+e.Path)
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	var want []string
	m.root.each("", func(path string, n *modelNode) { want = append(want, string(n.kind)+" "+path) })
	if !slices.Equal(got, want) {
		rt.Fatalf("list: got %q, want %q", got, want)
	}
}

func (m *fileModel) search(rt *rapid.T) {
	var want, got []string
	m.root.each("", func(path string, n *modelNode) {
		if n.is(core.TypeFile) && strings.Contains(n.content, "y") {
			want = append(want, path)
		}
	})
	found, err := m.tree.Search(m.t.Context(), core.SearchQuery{
		Pattern: "^y*$", Hidden: true, Ignored: true, Limit: 1000, MaxBytes: 1 << 20, Globs: []string{"**"},
	})
	if err != nil {
		rt.Fatal(err)
	}
	for _, match := range found.Matches {
		if match.Text == "yy" {
			got = append(got, match.Path)
		}
	}
	if !slices.Equal(got, want) {
		rt.Fatalf("search: got %q, want %q", got, want)
	}
}

// archive exports a directory and imports that where nothing is: a copy.
func (m *fileModel) archive(rt *rapid.T) {
	source, destination := m.drawPath(rt, "source"), m.drawPath(rt, "destination")
	from, code := m.root.locate(source, true, false)
	to, toCode := m.root.locate(destination, true, true)
	if code != "" || toCode != "" || !from.node.is(core.TypeDirectory) || from.node == m.root || to.node != nil {
		rt.Skip("nothing to export, or nowhere to import")
	}
	var archive bytes.Buffer
	compression := rapid.SampledFrom([]core.Compression{core.CompressNone, core.CompressGzip, core.CompressZstd}).Draw(rt, "compression")
	if _, err := m.tree.Export(m.t.Context(), source, &archive, compression); err != nil {
		rt.Fatal(err)
	}
	o := core.ImportOptions{MaxBytes: 1 << 20, MaxFiles: 1 << 10}
	if _, err := m.tree.Import(m.t.Context(), destination, &archive, o); err != nil {
		rt.Fatalf("import of %s to %s: %v", source, destination, err)
	}
	to.put(from.node.copy(nil))
}
