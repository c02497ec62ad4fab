package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"envapi/internal/workspace/files"
	"envapi/internal/workspace/vault"
)

// Survey is what is in the folders of workspaces, as Open would find it. Making it
// changes nothing. Close it at the end.
type Survey struct {
	Folders  map[string]Owned // by id
	Archives map[string]Owned // by id
	// Unfinished are archives that were being written, and Trash the trees that are being
	// freed: so many. An Open removes both.
	Unfinished, Trash int
	Leftovers         []files.Leftover
	// Strange are paths below the data folder that mean nothing: an Open passes them over.
	// Names are as they are, and may hold anything. At most mostStrange.
	Strange []string
	// Missing are folders that an Open makes.
	Missing []string

	archives *os.File // nil where there are none
}

// Owned is what stands under a name: whose it is, whether it is what it should be (a
// directory, or a regular file) and how long it is.
type Owned struct {
	UID  int
	Fits bool
	Size int64 // bytes
}

const mostStrange = 1000

// Look surveys the folders below a data folder. It fails where one of them cannot be
// read, or is none.
func Look(dir string) (_ *Survey, err error) {
	s := &Survey{Folders: map[string]Owned{}, Archives: map[string]Owned{}}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	live, err := s.open(dir, LiveFolder)
	if err != nil {
		return nil, err
	}
	defer closeIf(live)
	if s.archives, err = s.open(dir, ArchiveFolder); err != nil {
		return nil, err
	}
	trash, err := s.open(dir, "trash")
	if err != nil {
		return nil, err
	}
	defer closeIf(trash)
	staging, err := s.open(dir, "staging")
	if err != nil {
		return nil, err
	}
	defer closeIf(staging)
	if err := errors.Join(each(live, s.folder), each(s.archives, s.archive)); err != nil {
		return nil, err
	}
	if err := each(trash, func(*os.File, string) { s.Trash++ }); err != nil {
		return nil, err
	}
	if staging != nil && live != nil {
		s.Leftovers, err = files.Look(staging, live)
	}
	return s, err
}

// Close lets go of the folders.
func (s *Survey) Close() error {
	closeIf(s.archives)
	return nil
}

func closeIf(f *os.File) {
	if f != nil {
		_ = f.Close()
	}
}

// open opens a folder of the service's own; nil where there is none.
func (s *Survey) open(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ENOENT) {
		s.Missing = append(s.Missing, name)
		return nil, nil
	}
	if err != nil {
		return nil, failed("open a folder for workspaces", err)
	}
	return f, nil
}

// each tells of every name in a folder, in pieces, so that memory does not grow with it.
func each(dir *os.File, tell func(dir *os.File, name string)) error {
	for dir != nil {
		names, err := dir.Readdirnames(namesAtOnce)
		for _, name := range names {
			tell(dir, name)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return failed("list a folder for workspaces", err)
		}
	}
	return nil
}

func (s *Survey) folder(dir *os.File, name string) {
	if !idShape.MatchString(name) {
		s.strange(LiveFolder, name)
		return
	}
	s.Folders[name] = owned(dir, name, unix.S_IFDIR)
}

func (s *Survey) archive(dir *os.File, name string) {
	switch id := archivedID(name); {
	case id != "":
		s.Archives[id] = owned(dir, name, unix.S_IFREG)
	case isUnfinished(name):
		s.Unfinished++
	default:
		s.strange(ArchiveFolder, name)
	}
}

func (s *Survey) strange(folder, name string) {
	if len(s.Strange) < mostStrange {
		s.Strange = append(s.Strange, filepath.Join(folder, name))
	}
}

// owned looks at what a name means itself.
func owned(dir *os.File, name string, kind uint32) Owned {
	var st unix.Stat_t
	if unix.Fstatat(fd(dir), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return Owned{}
	}
	return Owned{UID: int(st.Uid), Fits: st.Mode&unix.S_IFMT == kind, Size: st.Size}
}

// VerifyArchive reads an archive to its end. It fails with vault.ErrDamaged where it
// could not be restored, or has more files, directories and other entries than were
// packed.
func (s *Survey) VerifyArchive(ctx context.Context, id string, packed int64) error {
	if err := check(ctx, id); err != nil {
		return err
	}
	n, err := unix.Openat(fd(s.archives), id+archiveEnd, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open its archive: %w", err)
	}
	archive := os.NewFile(uintptr(n), id+archiveEnd)
	defer archive.Close()
	return vault.Verify(ctx, archive, packed)
}
