package vault_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/internal/require"
	"envapi/internal/workspace/vault"
)

const secret = "the secret of somebody else"

// TestNothingOutsideIsCopiedWhileNamesAreSwapped: a program puts links, FIFOs and other
// directories in the place of what is read. Everything outside may be read by all, so
// that nothing but the way things are opened protects it.
func TestNothingOutsideIsCopiedWhileNamesAreSwapped(t *testing.T) {
	uid, to := users()
	base := home(t)
	outside := filepath.Join(base, "outside")
	must(t, os.MkdirAll(filepath.Join(outside, "sub"), 0o755))
	for _, name := range []string{"file", "sub/file"} {
		must(t, os.WriteFile(filepath.Join(outside, name), []byte(secret), 0o644))
	}
	dir := folder(t, filepath.Join(base, "folder"), uid)
	in := func(name string) string { return filepath.Join(dir, name) }
	as(t, uid, func() error {
		return errors.Join(
			os.MkdirAll(in("d/sub"), 0o700), os.WriteFile(in("d/file"), []byte("own"), 0o600), os.WriteFile(in("d/sub/file"), []byte("own"), 0o600),
			os.Symlink(outside, in("d2")), os.WriteFile(in("file"), []byte("own"), 0o600),
			os.Symlink(filepath.Join(outside, "file"), in("file2")), unix.Mkfifo(in("file3"), 0o600),
		)
	})
	stop := make(chan struct{})
	var all sync.WaitGroup
	for _, pair := range [][2]string{{"d", "d2"}, {"file", "file2"}, {"file", "file3"}} {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, in(pair[0]), unix.AT_FDCWD, in(pair[1]), unix.RENAME_EXCHANGE)
				}
			}
		})
	}
	whole := 0
	for end := time.Now().Add(time.Duration(require.Rounds(t, 3)) * time.Second); time.Now().Before(end) || whole == 0; {
		got, err := copied(t.Context(), t, dir, to)
		if err == nil {
			whole++
			wantNoSecret(t, got)
		} else if !errors.Is(err, vault.ErrChanged) {
			t.Errorf("copying gave %v", err)
			break
		}
		var b bytes.Buffer
		if _, err := vault.Pack(t.Context(), hold(t, dir), &b); err == nil {
			got, err := unpack(t.Context(), t, &b, uid)
			must(t, err)
			wantNoSecret(t, got)
		}
	}
	close(stop)
	all.Wait()
	t.Logf("%d copies", whole)
}

// wantNoSecret looks through all files, and follows no link.
func wantNoSecret(t *testing.T, dir string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), secret) {
			t.Errorf("%s has what is outside", path)
		}
		return err
	}))
}
