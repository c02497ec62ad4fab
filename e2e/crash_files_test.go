package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// How long files are: what can be edited and patched is short.
const (
	shortFile   = 2 << 10
	mostEntries = 25
)

// content is a text of lines, the first of which is a tag.
func (w *witness) content() string {
	tag := w.tag()
	lines := []int{1, 3, 40, 4000, 60000}[w.rng.IntN(5)]
	return tag + "\n" + strings.Repeat("of "+tag+"\n", lines-1)
}

// free is a path where nothing is, in a directory that is there.
func (w *witness) free(d *dwelling) string {
	return path.Join(w.oneOf(append(d.tree.directories(), "", "")), w.tag())
}

// changeFiles is a step that changes files.
func (w *witness) changeFiles(d *dwelling) *act {
	if len(d.tree) > mostEntries {
		return w.deleteFile(d)
	}
	kinds := []func(*dwelling) *act{
		w.writeFile, w.writeFile, w.appendFile, w.upload, w.upload, w.editFile, w.applyPatch, w.applyPatch, w.applyPatch,
		w.copyFile, w.moveFile, w.deleteFile, w.makeDirectory, w.importFiles,
	}
	return kinds[w.rng.IntN(len(kinds))](d)
}

// change is a step that makes one tree of another.
func (w *witness) change(d *dwelling, operation string, in object, change func(tree)) *act {
	in["environment_id"] = d.id
	to := d.but(func(d *dwelling) { d.state = "active"; change(d.tree) })
	return &act{operation: operation, in: in, on: d, to: to}
}

// tagged has the ETag of an answer be that of the content.
func tagged(content string) func(object) error {
	return func(answer object) error {
		if got, want := text(answer, "etag"), tagOf([]byte(content)); got != want {
			return fmt.Errorf("the ETag is %q, and of what was written it is %q", got, want)
		}
		return nil
	}
}

// writeFile writes a file that is there or not, also below directories that are not.
func (w *witness) writeFile(d *dwelling) *act {
	p, content, mode := w.oneOf(d.tree.files(1<<30)), w.content(), int64(0o644)
	if p == "" || w.rng.IntN(2) == 0 {
		p = path.Join(w.free(d), w.oneOf([]string{"", "x/y"}))
	} else {
		mode = d.tree[p].mode
	}
	s := w.change(d, "write_file", object{"path": p, "content": content}, func(t tree) {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if _, there := t[dir]; !there {
				t[dir] = node{'d', 0o755, ""}
			}
		}
		t[p] = node{'f', mode, content}
	})
	s.noted = tagged(content)
	return s
}

func (w *witness) appendFile(d *dwelling) *act {
	p := w.oneOf(d.tree.files(1 << 20))
	if p == "" {
		return nil
	}
	more := w.tag() + "\n"
	content := d.tree[p].data + more
	s := w.change(d, "write_file", object{"path": p, "content": more, "append": true}, func(t tree) {
		t[p] = node{'f', t[p].mode, content}
	})
	s.noted = tagged(content)
	return s
}

// upload writes a file by the route of bytes, under a condition where one is there.
func (w *witness) upload(d *dwelling) *act {
	p, content, mode := w.oneOf(d.tree.files(1<<30)), w.content(), int64(0o644)
	if p == "" || w.rng.IntN(2) == 0 {
		p = w.free(d)
	} else {
		mode = d.tree[p].mode
	}
	s := w.change(d, "upload_file", object{"path": p, "bytes": len(content)}, func(t tree) { t[p] = node{'f', mode, content} })
	s.call = func(ctx context.Context) (object, error) {
		header, _, err := w.bytes(ctx, http.MethodPut, d.id, "/content", url.Values{"path": {p}}, strings.NewReader(content))
		return object{"etag": strings.Trim(header.Get("ETag"), `"`)}, err
	}
	s.noted = tagged(content)
	return s
}

// editFile changes the first line, under a condition.
func (w *witness) editFile(d *dwelling) *act {
	p := w.oneOf(d.tree.files(shortFile))
	if p == "" {
		return nil
	}
	before := d.tree[p].data
	old, _, _ := strings.Cut(before, "\n")
	now := w.tag()
	content := now + "\n" + before[len(old)+1:]
	edits := []object{{"old": old + "\n", "new": now + "\n"}}
	if strings.Count(before, old+"\n") != 1 {
		edits = []object{{"old": before, "new": content}}
	}
	s := w.change(d, "edit_file", object{"path": p, "edits": edits, "if_match": tagOf([]byte(before))}, func(t tree) {
		t[p] = node{'f', t[p].mode, content}
	})
	s.noted = tagged(content)
	return s
}

// applyPatch changes the first lines of several files, makes one and deletes one.
func (w *witness) applyPatch(d *dwelling) *act {
	short := d.tree.files(shortFile)
	if len(short) == 0 {
		return nil
	}
	w.rng.Shuffle(len(short), func(i, j int) { short[i], short[j] = short[j], short[i] })
	var patch strings.Builder
	made, tag := w.free(d), w.tag()
	fmt.Fprintf(&patch, "--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+%s\n", made, tag)
	contents := tree{made: {'f', 0o644, tag + "\n"}}
	deleted := ""
	for i, p := range short[:min(len(short), 8)] {
		n := d.tree[p]
		lines := strings.SplitAfter(strings.TrimSuffix(n.data, "\n"), "\n")
		if i == 0 && len(short) > 2 {
			deleted = p
			fmt.Fprintf(&patch, "--- a/%s\n+++ /dev/null\n@@ -1,%d +0,0 @@\n-%s\n", p, len(lines), strings.Join(lines, "-"))
			continue
		}
		first := strings.TrimSuffix(lines[0], "\n")
		fmt.Fprintf(&patch, "--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-%[2]s\n+%[3]s\n", p, first, tag)
		contents[p] = node{'f', n.mode, tag + n.data[len(first):]}
	}
	return w.change(d, "apply_patch", object{"patch": patch.String()}, func(t tree) {
		for p, n := range contents {
			t[p] = n
		}
		if deleted != "" {
			delete(t, deleted)
		}
	})
}

// source is something that can be copied and moved, and where to.
func (w *witness) source(d *dwelling) (from, to string) {
	from = w.oneOf(append(d.tree.files(1<<30), d.tree.directories()...))
	return from, w.tag()
}

func (w *witness) copyFile(d *dwelling) *act {
	from, to := w.source(d)
	if from == "" {
		return nil
	}
	return w.change(d, "copy_file", object{"source": from, "destination": to}, func(t tree) { t.copies(from, to) })
}

func (w *witness) moveFile(d *dwelling) *act {
	from, to := w.source(d)
	if from == "" {
		return nil
	}
	if other := w.oneOf(d.tree.files(1 << 30)); other != "" && other != from && d.tree[from].kind == 'f' && w.rng.IntN(2) == 0 {
		to = other
	}
	return w.change(d, "move_file", object{"source": from, "destination": to, "overwrite": true}, func(t tree) {
		t.copies(from, to)
		t.remove(from)
	})
}

func (w *witness) deleteFile(d *dwelling) *act {
	p, _ := w.source(d)
	if p == "" {
		return nil
	}
	return w.change(d, "delete_file", object{"path": p, "recursive": true}, func(t tree) { t.remove(p) })
}

func (w *witness) makeDirectory(d *dwelling) *act {
	p := w.free(d)
	return w.change(d, "make_directory", object{"path": p + "/in", "parents": true}, func(t tree) {
		t[p], t[p+"/in"] = node{'d', 0o755, ""}, node{'d', 0o755, ""}
	})
}

// importFiles unpacks a tar into a directory of its own.
func (w *witness) importFiles(d *dwelling) *act {
	root := w.tag()
	in := tree{
		root: {'d', 0o755, ""}, root + "/d": {'d', 0o750, ""}, root + "/d/f": {'f', 0o640, w.content()},
		root + "/f": {'f', 0o755, w.content()}, root + "/link": {'l', 0o777, "d/f"},
	}
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	var failed error
	for p, n := range in {
		h := &tar.Header{Name: p, Mode: n.mode, Typeflag: tar.TypeReg, Size: int64(len(n.data))}
		switch n.kind {
		case 'd':
			h.Name, h.Typeflag = p+"/", tar.TypeDir
		case 'l':
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, n.data, 0
		}
		failed = errors.Join(failed, archive.WriteHeader(h))
		if n.kind == 'f' {
			_, err := archive.Write([]byte(n.data))
			failed = errors.Join(failed, err)
		}
	}
	failed = errors.Join(failed, archive.Close())
	s := w.change(d, "import_files", object{"root": root}, func(t tree) {
		for p, n := range in {
			t[p] = n
		}
	})
	s.call = func(ctx context.Context) (object, error) {
		if failed != nil {
			return nil, failed
		}
		_, _, err := w.bytes(ctx, http.MethodPut, d.id, "/archive", nil, &packed)
		return object{}, err
	}
	return s
}

// read is a step that changes nothing, and sees what must be there.
func (w *witness) read(d *dwelling) *act {
	p := w.oneOf(d.tree.files(32 << 10))
	if p == "" {
		return nil
	}
	s := w.change(d, "read_file", object{"path": p}, func(tree) {})
	s.noted = func(answer object) error {
		if text(answer, "text") != d.tree[p].data {
			return fmt.Errorf("%s holds %.100q, not %.100q", p, text(answer, "text"), d.tree[p].data)
		}
		return tagged(d.tree[p].data)(answer)
	}
	return s
}
