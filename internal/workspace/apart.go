package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"envapi/core"
)

// What is done with folders by a program that is not their service, and so has no
// Workspaces: opening those would put right what the service is in the middle of.

// OpenFolder opens the folder of an environment in the directory of all, only to begin
// at, through no link and into no mount. It fails with fs.ErrNotExist where there is none.
func OpenFolder(live *os.File, id string) (*os.File, error) {
	if !idShape.MatchString(id) {
		return nil, fmt.Errorf("cannot use the workspace %q: that is no id of an environment", id)
	}
	return openPathOf(live, id)
}

// ArchiveName gives the name of an environment's archive in the directory of all.
func ArchiveName(id string) string { return id + archiveEnd }

// Count counts what is in the folder of an environment as Usage does, but for deleted
// files that are still open, and roughly where directories are moved meanwhile.
func Count(ctx context.Context, live *os.File, id string) (core.DiskUse, error) {
	if !idShape.MatchString(id) {
		return core.DiskUse{}, fmt.Errorf("cannot use the workspace %q: that is no id of an environment", id)
	}
	c := counter{linked: map[uint64]struct{}{}, buf: make([]byte, maxPiece)}
	if err := c.count(ctx, live, id); err != nil {
		return core.DiskUse{}, failed("count the files of "+id, err)
	}
	return core.DiskUse{Bytes: c.size, Files: c.files}, nil
}

// Empty removes all that is in a directory, however deep and whatever its modes, as the
// trash is emptied. Nobody may put anything into it meanwhile.
func Empty(ctx context.Context, dir *os.File) error {
	for {
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
		names, err := dir.Readdirnames(namesAtOnce)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := RemoveFolder(ctx, dir, name); err != nil {
				return err
			}
		}
	}
}

// RemoveFolder removes what has a name in a directory, as Empty does.
func RemoveFolder(ctx context.Context, dir *os.File, name string) error {
	t := tree{trash: dir, id: "left", name: name}
	return t.empty(ctx)
}
