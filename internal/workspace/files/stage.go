package files

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"envapi/core"
)

const (
	newFile      = 0o644
	newDirectory = 0o755
	// writeBehind is how much is written before the disk is told to begin: else all of
	// a large file would be in memory until the end.
	writeBehind = 8 << 20
)

// staged is content in the staging folder.
type staged struct {
	tree *Tree
	file *os.File // for reading; nil once it is discarded
	dir  *os.File // where it is, under name; not its own
	name string
	size int64
	tag  string
}

// Size is the length of the content.
func (s *staged) Size() int64 { return s.size }

// ETag is that of the content.
func (s *staged) ETag() string { return s.tag }

// Discard frees what was not committed.
func (s *staged) Discard() {
	if s.leave() {
		_ = unix.Unlinkat(fd(s.dir), s.name, 0)
	}
}

// leave lets go of the content, and leaves it where it is. It says whether it was held.
func (s *staged) leave() bool {
	if s.file == nil {
		return false
	}
	_ = s.file.Close()
	s.file = nil
	return true
}

// Stage implements core.FileWriter. The memory that it takes is that of one piece,
// whatever the content's length; a negative limit is none.
func (t *Tree) Stage(ctx context.Context, content io.Reader, limit int64) (core.Staged, error) {
	folder, err := t.folder()
	if err != nil {
		return nil, err
	}
	s := &staged{tree: t, dir: folder, name: "s." + rand.Text()}
	var f *os.File
	if err := t.root.As(func() (err error) {
		f, err = createAt(folder, s.name)
		return err
	}); err != nil {
		return nil, failed("stage a file", err)
	}
	s.file = f
	err = s.fill(ctx, content, limit)
	if err == nil {
		err = failed("stage a file", t.store.reached("staged"))
	}
	if err != nil {
		s.Discard()
		return nil, err
	}
	return s, nil
}

// createAt makes a file of the caller's for writing.
func createAt(dir *os.File, name string) (*os.File, error) {
	f, err := openAt(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(newFile); err != nil { // the umask does not matter
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// fill takes the content in and makes it durable.
func (s *staged) fill(ctx context.Context, content io.Reader, limit int64) error {
	if err := s.copy(ctx, content, limit); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return failed("write a file to disk", err)
	}
	var reading *os.File
	err := s.tree.root.As(func() (err error) {
		reading, err = openAt(s.dir, s.name, unix.O_RDONLY|unix.O_NOFOLLOW)
		return err
	})
	if err != nil {
		return failed("stage a file", err)
	}
	writing := s.file
	s.file = reading
	return failed("write a file to disk", writing.Close())
}

// copy writes and hashes the content piece by piece.
func (s *staged) copy(ctx context.Context, content io.Reader, limit int64) error {
	buffer := pieces.Get().(*[pieceBytes]byte) //nolint:forcetypeassert // the pool's own
	defer pieces.Put(buffer)
	h, begun := sha256.New(), int64(0)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, readErr := content.Read(buffer[:])
		if s.size += int64(n); limit >= 0 && s.size > limit {
			return core.Errorf(core.CodeTooLarge, "cannot write a file of more than %d bytes", limit).With("allowed_bytes", limit)
		}
		h.Write(buffer[:n])
		if _, err := s.file.Write(buffer[:n]); err != nil {
			return failed("write a file", err)
		}
		if s.size-begun >= writeBehind {
			_ = unix.SyncFileRange(fd(s.file), begun, s.size-begun, unix.SYNC_FILE_RANGE_WRITE)
			begun = s.size
		}
		if readErr == io.EOF {
			s.tag = tagOf(h)
			return nil
		}
		if readErr != nil {
			return readErr
		}
	}
}
