package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"envapi/internal/require"
)

// staged are the files that the service has on their way into workspaces.
func (s *service) staged(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(s.data, "staging"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// noStaging sees that nothing is on its way any more.
func (s *service) noStaging(t *testing.T) {
	t.Helper()
	err := eventually(func() error {
		if files := s.staged(t); len(files) > 0 {
			return fmt.Errorf("%d files are left in staging: %.300v", len(files), files)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// killer reads a body, and kills the service when so many bytes were taken.
type killer struct {
	io.Reader
	left int64
	kill func()
}

func (k *killer) Read(p []byte) (int, error) {
	if k.left <= 0 && k.kill != nil {
		k.kill()
		k.kill = nil
	}
	n, err := k.Reader.Read(p)
	k.left -= int64(n)
	return n, err
}

func TestC26AKilledUploadLeavesTheOldOrTheNew(t *testing.T) {
	const size = 256 << 20
	onEachTier(t, func(t *testing.T, s *service) {
		f := s.place(t).folder(t, s.rest)
		f.write(t, "f", "old\n")
		old, whole := tagOf([]byte("old\n")), tagOfReader(t, noise(size))
		news := 0
		for round := range require.Rounds(t, 1) {
			for _, at := range []int64{5 << 20, 170 << 20, size - 1, size, size} {
				body := &killer{noise(size), at, s.kill}
				if victim := s; at == size { // while the rest of it is written, or just after
					body.left, body.kill = size-4<<20, func() {
						go func() {
							time.Sleep(rand.N(300 * time.Millisecond)) // anywhere in the commit
							_ = victim.cmd.Process.Kill()
						}()
					}
				}
				_, err := f.upload(t.Context(), "f", body, nil)
				s.kill()
				s = s.restart(t)
				f.rest, f.place.rest, f.door = s.rest, s.rest, s.rest
				tag := f.tag(t, "f")
				switch {
				case tag != old && tag != whole:
					t.Fatalf("round %d, killed at %d: the file is neither the old nor the new", round, at)
				case err == nil && tag != whole:
					t.Fatalf("round %d, killed at %d: what was answered is gone", round, at)
				case tag == whole:
					news++
					f.write(t, "f", "old\n")
				}
				if got := f.run(t, "ls -A"); got != "f" {
					t.Errorf("litter in the workspace: %q", got)
				}
				s.noStaging(t)
			}
		}
		t.Logf("%d were new", news)
	})
}

func TestC26C44AKilledPatchIsAllOrNothing(t *testing.T) {
	const files = 40
	onEachTier(t, func(t *testing.T, s *service) {
		f := s.place(t).folder(t, s.rest)
		f.py(t, fmt.Sprintf("for i in range(%d): open(f'f{i:02}', 'w').write('0\\n')", files))
		var took time.Duration
		version, news := 0, 0
		for range require.Rounds(t, 6) {
			patch := manyFiles(files, version, version+1)
			if took == 0 { // how long one takes that nobody kills
				begin := time.Now()
				f.do(t, "apply_patch", object{"cwd": "", "patch": patch})
				took, version = time.Since(begin), version+1
				patch = manyFiles(files, version, version+1)
			}
			answered := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			go func() {
				_, err := f.call(ctx, "apply_patch", f.in(object{"cwd": "", "patch": patch}))
				answered <- err
			}()
			time.Sleep(rand.N(took)) // anywhere in it
			s.kill()
			err := <-answered
			cancel()
			s = s.restart(t)
			f.rest, f.door = s.rest, s.rest
			got := strings.Fields(f.run(t, "cat f* | sort | uniq -c"))
			switch {
			case len(got) == 2 && got[1] == fmt.Sprint(version+1):
				version, news = version+1, news+1
			case len(got) != 2 || got[1] != fmt.Sprint(version):
				t.Fatalf("after the kill the files hold %v", got)
			case err == nil:
				t.Fatal("what was answered is gone")
			}
			if got := f.run(t, "ls -A | wc -l"); got != fmt.Sprint(files+version%2) {
				t.Errorf("there are %s files at version %d", got, version)
			}
			s.noStaging(t)
		}
		t.Logf("one takes %s; %d of the killed ones were done", took, news)
	})
}

// manyFiles is a patch of many files, each from one version to the next. One more
// is there at the odd versions.
func manyFiles(files, from, to int) string {
	var b strings.Builder
	for i := range files {
		fmt.Fprintf(&b, "--- a/f%02[1]d\n+++ b/f%02[1]d\n@@ -1 +1 @@\n-%[2]d\n+%[3]d\n", i, from, to)
	}
	if to%2 == 1 {
		b.WriteString("--- /dev/null\n+++ b/odd\n@@ -0,0 +1 @@\n+x\n")
	} else {
		b.WriteString("--- a/odd\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n")
	}
	return b.String()
}
