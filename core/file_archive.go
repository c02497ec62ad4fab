package core

import (
	"cmp"
	"context"
	"errors"
	"io"
)

// maxImports is how many imports of an account are under way at one time: each has a
// thread of its own for as long as its sender takes.
const maxImports = 16

// maxExports is likewise for exports: each has a dozen descriptors and a mebibyte, for as
// long as its reader takes.
const maxExports = 64

// ExportFiles writes a directory as a tar. It fails before the first byte with the
// codes of paths; later, what was written is not whole. Skipped are the FIFOs, sockets
// and devices, which are not in it.
func (s *Service) ExportFiles(ctx context.Context, c Caller, in ExportFilesInput, to io.Writer) (skipped []string, err error) {
	if err := checkNUL("path", in.Path); err != nil {
		return nil, err
	}
	f, err := s.readFolder(ctx, c, in.EnvironmentID, in.Restoring)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := s.exports.enter(c.Account, "exports", maxExports); err != nil {
		return nil, err
	}
	defer s.exports.leave(c.Account)
	skipped, err = f.Export(ctx, in.Path, to, cmp.Or(Compression(in.Compression), CompressGzip))
	return shownPaths(skipped), err
}

// ImportFiles unpacks a tar into a directory: all of it, or nothing. Size is that of the
// body, or less than 0 where that is not known. It fails with `already_exists`,
// `invalid_argument` for an archive that is none or is hostile, `quota_exceeded`,
// `disk_full` and the codes of paths.
func (s *Service) ImportFiles(ctx context.Context, c Caller, in ImportFilesInput, body io.Reader, _ int64) (ImportedFiles, error) {
	if err := checkNUL("path", in.Path); err != nil {
		return ImportedFiles{}, err
	}
	f, err := s.changeFolder(ctx, c, in.EnvironmentID, in.Restoring)
	if err != nil {
		return ImportedFiles{}, err
	}
	defer f.Close()
	if err := s.hasSpace(); err != nil {
		return ImportedFiles{}, err
	}
	if err := s.imports.enter(c.Account, "imports", maxImports); err != nil {
		return ImportedFiles{}, err
	}
	defer s.imports.leave(c.Account)
	claim := f.claim()
	defer claim.settle(true)
	room, err := claim.takeAll(ctx)
	if err != nil {
		return ImportedFiles{}, err
	}
	from := &incoming{ctx: ctx, f: f, from: body}
	done, err := f.Import(ctx, in.Path, from, ImportOptions{Overwrite: in.Overwrite, MaxBytes: room.Bytes, MaxFiles: room.Files})
	err = from.end(err)
	if hasCode(err, CodeTooLarge) {
		err = f.noRoom(CopyOptions{Limit: room.Bytes, Files: room.Files}, err)
	}
	if err != nil {
		return ImportedFiles{}, err
	}
	return ImportedFiles{
		Path: cmp.Or(shownPath(in.Path), "."), Files: done.Files, Directories: done.Directories, Links: done.Links,
		SizeBytes: done.Bytes, Skipped: shownPaths(done.Skipped),
	}, nil
}

// incoming is an archive on its way in. A reset does not wait for it, only, once it is
// read to its end, for what is then done with it.
type incoming struct {
	ctx    context.Context
	f      *folder
	from   io.Reader
	read   int64
	looked int64
	leave  func() // nil until the folder was entered
}

func (i *incoming) Read(p []byte) (int, error) {
	n, err := i.from.Read(p)
	i.read += int64(n)
	if i.read-i.looked >= spaceStep {
		i.looked = i.read
		if err := i.f.service.hasSpace(); err != nil {
			return 0, err
		}
	}
	if errors.Is(err, io.EOF) && i.leave == nil {
		if refused := i.enter(); refused != nil {
			return 0, refused
		}
	}
	return n, err
}

// enter enters the folder, on a goroutine of its own: who reads may do it as the
// environment's user, who must not open what is the store's.
func (i *incoming) enter() error {
	refused := make(chan error)
	go func() {
		leave, err := i.f.enter(i.ctx)
		i.leave = leave
		refused <- err
	}()
	return <-refused
}

// end ends it, and says whether it came into the folder that there is.
func (i *incoming) end(err error) error {
	if i.leave == nil && err == nil {
		err = i.enter()
	}
	if i.leave != nil {
		i.leave()
	}
	return err
}
