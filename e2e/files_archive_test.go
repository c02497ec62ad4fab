package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// export gives an archive and what was left out of it.
func (f folder) export(t *testing.T, name, compression string) (archive []byte, skipped []string) {
	t.Helper()
	address := f.base + strings.ReplaceAll(fileRoutes, "{environment_id}", f.id) + "/archive?" +
		url.Values{"path": {f.at(name)}, "compression": {compression}}.Encode()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+f.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	archive, err = io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the export is answered %s, %v: %.300s", resp.Status, err, archive)
	}
	if list := resp.Trailer.Get("Envapi-Skipped"); list != "" {
		if err := json.Unmarshal([]byte(list), &skipped); err != nil {
			t.Errorf("the trailer is %q", list)
		}
	}
	return archive, skipped
}

// imports puts an archive; what is refused is a *problem.
func (f folder) imports(ctx context.Context, name string, archive io.Reader, query string) (object, error) {
	address := f.base + strings.ReplaceAll(fileRoutes, "{environment_id}", f.id) + "/archive?" + query + "&" + url.Values{"path": {f.at(name)}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, address, archive)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+f.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return decodeAnswer(resp.StatusCode, data)
}

// inventory lists all that a tree has but the times of its links: what is below a
// directory, as archives do.
const inventory = `import os, hashlib
for d, dirs, files in sorted(os.walk(%q)):
    for n in sorted(dirs + files):
        p = os.path.join(d, n); s = os.lstat(p); r = os.path.relpath(p, %[1]q)
        if os.path.islink(p): print(ascii(r), "->", ascii(os.readlink(p)))
        elif n in dirs: print(ascii(r), oct(s.st_mode), s.st_mtime_ns // 10**9)
        else: print(ascii(r), oct(s.st_mode), s.st_mtime_ns // 10**9, s.st_size, hashlib.sha256(open(p, "rb").read()).hexdigest(), os.listxattr(p))
`

var archiveCases = []fileCase{
	{"C61 there and back, three times", func(t *testing.T, f folder) {
		f.run(t, `mkdir -p d/sub/empty d/$'odd\nname'; seq 20000 > d/n; printf '\0\xff' > d/sub/b; : > d/e; chmod 755 d/n; chmod 600 d/sub/b
ln -s sub/b d/l; ln -s /etc d/out; ln -s nowhere d/$'odd\nname'/x; echo x > d/$'odd\nname'/-f; mkdir -m 555 d/ro
touch -d 2001-02-03 d/e d/sub`)
		f.py(t, "import os; os.setxattr('d/e', 'user.note', b'kept')")
		want := f.py(t, fmt.Sprintf(inventory, "d"))
		from := "d"
		for _, compression := range []string{"none", "gzip", "zstd"} {
			archive, skipped := f.export(t, from, compression)
			if len(skipped) != 0 {
				t.Errorf("%v was left out", skipped)
			}
			from = "from-" + compression
			if _, err := f.imports(t.Context(), from, bytes.NewReader(archive), ""); err != nil {
				t.Fatalf("%s: %v", compression, err)
			}
			if got := f.py(t, fmt.Sprintf(inventory, from)); got != want {
				t.Errorf("%s: there was\n%s\nand came back\n%s", compression, want, got)
			}
		}
		f.run(t, "chmod -R u+w .")
	}},
	{"C20 what is no file is left out and said", func(t *testing.T, f folder) {
		f.run(t, "mkdir -p d/sub; echo in > d/f; mkfifo d/p d/sub/q")
		archive, skipped := f.export(t, "d", "none")
		if len(skipped) != 2 || !strings.HasSuffix(skipped[0], "p") || !strings.HasSuffix(skipped[1], "sub/q") {
			t.Errorf("left out are %v", skipped)
		}
		if names := tarNames(t, archive); !slices.Contains(names, "f") || slices.Contains(names, "p") {
			t.Errorf("the archive has %v", names)
		}
	}},
	{"an import replaces nothing by itself", func(t *testing.T, f folder) {
		f.run(t, "mkdir d; echo mine > d/f")
		archive := pack(t, entryOf("f", "theirs\n"), entryOf("g", "theirs\n"))
		_, err := f.imports(t.Context(), "d", bytes.NewReader(archive), "")
		isProblem(t, "already_exists", "an import over a file", nil, err)
		if got := f.run(t, "cat d/*"); got != "mine" {
			t.Errorf("there is %q", got)
		}
		if _, err := f.imports(t.Context(), "d", bytes.NewReader(archive), "overwrite=true"); err != nil {
			t.Error(err)
		}
		if got := f.run(t, "cat d/*"); got != "theirs\ntheirs" {
			t.Errorf("there is %q", got)
		}
	}},
	{"D11 an import gives no privileges", func(t *testing.T, f folder) {
		h := entryOf("su", "x\n")
		h.Mode, h.Uid, h.Gid, h.Uname = 0o6755, 0, 0, "root"
		answer, err := f.imports(t.Context(), "d", bytes.NewReader(pack(t, h)), "")
		if err == nil {
			if got := f.run(t, "stat -c %a d/su; [ -O d/su ] && echo own"); got != "755\nown" {
				t.Errorf("it came to %q", got)
			}
		} else {
			isProblem(t, "invalid_argument", "a setuid file", answer, err)
		}
		f.fails(t, "invalid_argument", "write_file", object{"path": "x", "content": "", "mode": "4755"})
		f.fails(t, "invalid_argument", "write_file", object{"path": "x", "content": "", "mode": "10755"})
	}},
	{"C62 hostile archives are refused whole", func(t *testing.T, f folder) {
		for name, archive := range hostileArchives(t) {
			f.run(t, "rm -rf d outside; mkdir d outside; echo kept > d/kept; ls -lA --time-style=full-iso d outside > list")
			begin := time.Now()
			_, err := f.imports(t.Context(), "d", bytes.NewReader(archive), "overwrite=true")
			if p := isProblem(t, "invalid_argument|too_large|path_outside_workspace|quota_exceeded", name, nil, err); p.Detail == "" {
				t.Errorf("%s: no word on why", name)
			}
			if d := time.Since(begin); d > patience {
				t.Errorf("%s: it took %s", name, d)
			}
			f.run(t, "ls -lA --time-style=full-iso d outside | cmp - list; cat d/kept")
			if f.run(t, "ls /tmp/envapi-was-here /etc/envapi-was-here 2>/dev/null || true") != "" {
				t.Errorf("%s: something was written outside", name)
			}
		}
	}},
}

func TestCasesOfArchives(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		for _, c := range archiveCases {
			t.Run(c.name, func(t *testing.T) {
				c.play(t, p.folder(t, s.rest))
				s.noStaging(t)
			})
		}
	})
}

func TestC62ABombIsStoppedAtTheBound(t *testing.T) {
	t.Parallel()
	s := start(t, config{env: map[string]string{"ENVAPI_MAX_DISK_BYTES": fmt.Sprint(64 << 20), "ENVAPI_MAX_FILES": "1000"}})
	f := s.place(t).folder(t, s.rest)
	before := resident(t, s.cmd.Process.Pid)
	_, err := f.imports(t.Context(), "d", bytes.NewReader(bomb(t, 1<<30)), "")
	isProblem(t, "too_large|quota_exceeded", "1 GB of zeros", nil, err)
	var many []*tar.Header
	for i := range 5000 {
		many = append(many, entryOf(fmt.Sprint("f", i), ""))
	}
	_, err = f.imports(t.Context(), "d", bytes.NewReader(pack(t, many...)), "")
	isProblem(t, "too_large|quota_exceeded", "5000 files", nil, err)
	if grown := resident(t, s.cmd.Process.Pid) - before; grown > 64<<20 {
		t.Errorf("the service has grown by %d bytes", grown)
	}
	if got := f.run(t, "ls -A"); got != "" {
		t.Errorf("there is %q", got)
	}
	s.noStaging(t)
	if size := folderSize(t, filepath.Join(s.data, "workspaces")); size > 1<<20 {
		t.Errorf("the workspaces have %d bytes", size)
	}
}

// entryOf is a file of an archive; its content stands in a field that tar does not
// write for a file.
func entryOf(name, content string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), Linkname: content}
}

// pack makes a tar of entries.
func pack(t *testing.T, entries ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		var content string
		if h.Typeflag == tar.TypeReg {
			content, h.Linkname = h.Linkname, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func hostileArchives(t *testing.T) map[string][]byte {
	t.Helper()
	link := func(kind byte, name, target string) *tar.Header {
		return &tar.Header{Typeflag: kind, Name: name, Linkname: target, Mode: 0o777}
	}
	good := func() *tar.Header { return entryOf("good", "x") } // what comes before is not there either
	whole := pack(t, entryOf("a", strings.Repeat("x", 5000)))
	return map[string][]byte{
		"dots":                         pack(t, good(), entryOf("../outside/x", "x")),
		"dots in the middle":           pack(t, good(), entryOf("a/../../outside/x", "x")),
		"dots at the end":              pack(t, good(), entryOf("a/..", "x")),
		"an absolute name":             pack(t, good(), entryOf("/tmp/envapi-was-here", "x")),
		"a file through a link out":    pack(t, good(), link(tar.TypeSymlink, "l", "../outside"), entryOf("l/x", "x")),
		"a file through an absolute":   pack(t, good(), link(tar.TypeSymlink, "l", "/etc"), entryOf("l/envapi-was-here", "x")),
		"a link through a link":        pack(t, good(), link(tar.TypeSymlink, "l", "../outside"), link(tar.TypeSymlink, "l/x", "y")),
		"a hard link out":              pack(t, good(), link(tar.TypeLink, "h", "/etc/hostname")),
		"a hard link with dots":        pack(t, good(), link(tar.TypeLink, "h", "../list")),
		"a hard link to what is there": pack(t, good(), link(tar.TypeLink, "h", "kept")),
		"a hard link through a link":   pack(t, good(), link(tar.TypeSymlink, "l", ".."), link(tar.TypeLink, "h", "l/list")),
		"a device":                     pack(t, good(), &tar.Header{Typeflag: tar.TypeChar, Name: "null", Mode: 0o666, Devmajor: 1, Devminor: 3}),
		"a block device":               pack(t, good(), &tar.Header{Typeflag: tar.TypeBlock, Name: "disk", Mode: 0o666}),
		"a file below a file":          pack(t, good(), entryOf("a", "x"), entryOf("a/b", "x")),
		"cut off":                      whole[:2000],
		"no tar":                       []byte(strings.Repeat("no tar at all ", 100)),
		"a gzip cut off":               bomb(t, 1<<20)[:100],
		"a number of nonsense":         append(bytes.Clone(whole[:100]), append([]byte("zzzzzzz\x00"), whole[108:]...)...),
	}
}

// bomb is a packed tar of a file of zeros, whole MiB of them. They are packed once: the
// members of a gzip follow each other.
func bomb(t *testing.T, size int64) []byte {
	t.Helper()
	member := func(content []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(content)
		if err := errors.Join(err, z.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	var header bytes.Buffer
	if err := tar.NewWriter(&header).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "zeros", Mode: 0o644, Size: size}); err != nil {
		t.Fatal(err)
	}
	zeros := bytes.Repeat(member(make([]byte, 1<<20)), int(size>>20))
	return slices.Concat(member(header.Bytes()), zeros, member(make([]byte, 1024)))
}

// tarNames lists a tar.
func tarNames(t *testing.T, archive []byte) []string {
	t.Helper()
	var names []string
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.TrimPrefix(h.Name, "./"))
	}
}

// plain unpacks as much of a gzip as there is.
func plain(data []byte) string {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return string(data)
	}
	text, _ := io.ReadAll(z)
	return string(text)
}
