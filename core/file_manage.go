package core

import "context"

// MakeDirectory makes a directory. It fails with `already_exists`, `quota_exceeded` and
// the codes of paths.
func (s *Service) MakeDirectory(ctx context.Context, c Caller, in MakeDirectoryInput) (FileEntry, error) {
	f, err := s.toChange(ctx, c, in.FileRef)
	if err != nil {
		return FileEntry{}, err
	}
	defer f.Close()
	claim := f.claim()
	made := false
	defer func() { claim.settle(made) }()
	need := DiskUse{blockSize, 1}
	if in.Parents {
		if _, err := f.Stat(ctx, in.Path, false); err == nil {
			need = DiskUse{}
		} else {
			need = need.plus(f.missing(ctx, in.Path))
		}
	}
	if err := claim.grow(ctx, need); err != nil {
		return FileEntry{}, err
	}
	var info FileInfo
	err = f.during(ctx, func() (err error) {
		info, made, err = f.FileTree.MakeDirectory(ctx, in.Path, in.Parents)
		return err
	})
	if err != nil {
		return FileEntry{}, err
	}
	return entryOf(info), nil
}

// toChange opens the folder of what is to be changed.
func (s *Service) toChange(ctx context.Context, c Caller, ref FileRef) (*folder, error) {
	if err := checkPath("path", ref.Path); err != nil {
		return nil, err
	}
	return s.changeFolder(ctx, c, ref.EnvironmentID, ref.Restoring)
}

// DeleteFile takes away what stands at a path; a link itself. It fails with
// `not_empty`, `etag_mismatch` and the codes of paths.
func (s *Service) DeleteFile(ctx context.Context, c Caller, in DeleteFileInput) (Nothing, error) {
	f, err := s.toChange(ctx, c, in.FileRef)
	if err != nil {
		return Nothing{}, err
	}
	defer f.Close()
	return Nothing{}, f.during(ctx, func() error {
		return f.Remove(ctx, in.Path, in.Recursive, Condition{Match: tagsOf(in.IfMatch)})
	})
}

// CopyFile copies a file or a directory. It fails with `already_exists`,
// `etag_mismatch`, `quota_exceeded` and the codes of paths.
func (s *Service) CopyFile(ctx context.Context, c Caller, in CopyFileInput) (CopiedFile, error) {
	f, o, err := s.toCopy(ctx, c, in)
	if err != nil {
		return CopiedFile{}, err
	}
	defer f.Close()
	claim := f.claim()
	made := false
	defer func() { claim.settle(made) }()
	var limited bool
	if o.Limit, o.Files, limited, err = f.toTake(ctx, claim, in); err != nil {
		return CopiedFile{}, err
	}
	var done CopiedFile
	err = f.during(ctx, func() error {
		info, skipped, err := f.Copy(ctx, in.Source, in.Destination, o)
		done.FileEntry, done.Skipped = entryOf(info), shownPaths(skipped)
		return err
	})
	made = err == nil
	if limited && hasCode(err, CodeTooLarge) {
		err = f.noRoom(o, err)
	}
	if err != nil {
		return CopiedFile{}, in.named(err)
	}
	done.FileEntry = f.arrived(ctx, in.Destination, done.FileEntry)
	return done, nil
}

// arrived completes what was copied or moved with its ETag, which it is done without
// where somebody has changed it since.
func (f *folder) arrived(ctx context.Context, path string, entry FileEntry) FileEntry {
	info, err := f.Stat(ctx, path, false)
	if err == nil {
		info, err = f.tagged(ctx, path, info, nil)
	}
	if err != nil {
		return entry
	}
	return entryOf(info)
}

// named gives a failure the name that its path has in the input.
func (in CopyFileInput) named(err error) error {
	e := AsError(err)
	if e.Facts["field"] != "path" {
		return err
	}
	switch e.Facts["path"] {
	case in.Source:
		return e.With("field", "source")
	case in.Destination:
		return e.With("field", "destination")
	}
	return err
}

// toTake takes the room for a copy, and says how much may be copied; limited says
// that this is all that there is.
func (f *folder) toTake(ctx context.Context, claim *claim, in CopyFileInput) (bytes, files int64, limited bool, err error) {
	source, err := f.Stat(ctx, in.Source, false)
	if err != nil {
		return 0, 0, false, err
	}
	if source.Type == TypeDirectory {
		room, err := claim.takeAll(ctx)
		return room.Bytes, room.Files, true, err
	}
	old, err := f.Stat(ctx, in.Destination, false)
	there := err == nil && old.Type != TypeDirectory
	need := f.needs(ctx, in.Destination, there, source.Size, old.Size)
	return source.Size, 1, false, claim.grow(ctx, need)
}

// noRoom is what a copy that does not fit fails with.
func (f *folder) noRoom(o CopyOptions, cause error) error {
	limits := f.service.limitsOf(f.env)
	limit, allowed, left := limitDiskBytes, limits.DiskBytes, o.Limit
	if e := AsError(cause); e.Facts["allowed_files"] != nil {
		limit, allowed, left = limitFiles, limits.Files, o.Files
	}
	return Errorf(CodeQuotaExceeded, "there is room for %d more (limit %s), which is too little: delete files, or put less", left, limit).
		With("limit", limit).With("allowed", allowed).With("used", allowed-left).Because(cause)
}

// MoveFile renames a file or a directory in one step. It fails with `already_exists`,
// `etag_mismatch` and the codes of paths.
func (s *Service) MoveFile(ctx context.Context, c Caller, in CopyFileInput) (CopiedFile, error) {
	f, o, err := s.toCopy(ctx, c, in)
	if err != nil {
		return CopiedFile{}, err
	}
	defer f.Close()
	claim := f.claim()
	made := false
	defer func() { claim.settle(made) }()
	if in.Parents {
		if err := claim.grow(ctx, f.missing(ctx, in.Destination)); err != nil {
			return CopiedFile{}, err
		}
	}
	var info FileInfo
	err = f.during(ctx, func() (err error) {
		info, err = f.Move(ctx, in.Source, in.Destination, o)
		return err
	})
	made = err == nil
	if err != nil {
		return CopiedFile{}, in.named(err)
	}
	return CopiedFile{FileEntry: f.arrived(ctx, in.Destination, entryOf(info))}, nil
}

func (s *Service) toCopy(ctx context.Context, c Caller, in CopyFileInput) (*folder, CopyOptions, error) {
	o := CopyOptions{
		Overwrite: in.Overwrite, Parents: in.Parents,
		If: Condition{Match: tagsOf(in.IfMatch)},
	}
	err := firstError(checkPath("source", in.Source), checkPath("destination", in.Destination))
	if err != nil {
		return nil, o, err
	}
	f, err := s.changeFolder(ctx, c, in.EnvironmentID, in.Restoring)
	return f, o, err
}
