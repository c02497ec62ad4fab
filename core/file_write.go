package core

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"path"
	"strings"
)

// changeTries is how often a change is made anew that is judged by what it has read,
// where somebody else changes the file in between.
const changeTries = 16

// untilAlone makes a change that is judged by what it has read, anew where somebody else
// changed the file in between, unless refused says that a mismatch is with the caller's
// own condition.
func untilAlone(change func() error, refused func(error) bool) error {
	for range changeTries {
		if err := change(); !hasCode(err, CodeETagMismatch) || refused(err) {
			return err
		}
	}
	return Errorf(CodeUnavailable, "nothing was changed: somebody else changed the file each of the %d times that it was read for this; try again", changeTries).
		With("retry_after_ms", retryAfter.Milliseconds())
}

// WriteFile has a file hold something. It fails with `etag_mismatch`, `quota_exceeded`,
// `disk_full` and the codes of paths.
func (s *Service) WriteFile(ctx context.Context, c Caller, in WriteFileInput) (WrittenFile, error) {
	content := []byte(in.Content)
	if in.Encoding == encodingBase64 {
		var err error
		if content, err = base64.StdEncoding.DecodeString(in.Content); err != nil {
			return WrittenFile{}, invalid("content", "cannot read content as base64: use the standard alphabet with padding, or leave encoding out")
		}
	}
	w, err := newWriting(in.FileRef, in.Mode, in.Parents, in.IfMatch, in.IfNoneMatch)
	if err != nil {
		return WrittenFile{}, err
	}
	f, err := s.changeFolder(ctx, c, in.EnvironmentID, in.Restoring)
	if err != nil {
		return WrittenFile{}, err
	}
	defer f.Close()
	if in.Append {
		return w.extend(ctx, f, content)
	}
	return w.put(ctx, f, bytes.NewReader(content), int64(len(content)))
}

// UploadFile has a file hold a body, which is read only where nothing forbids it
// already. Size is that of the body, or less than 0 where that is not known. It fails
// as WriteFile does.
func (s *Service) UploadFile(ctx context.Context, c Caller, in UploadFileInput, body io.Reader, size int64) (WrittenFile, error) {
	w, err := newWriting(in.FileRef, in.Mode, in.Parents, in.IfMatch, in.IfNoneMatch)
	if err != nil {
		return WrittenFile{}, err
	}
	f, err := s.changeFolder(ctx, c, in.EnvironmentID, in.Restoring)
	if err != nil {
		return WrittenFile{}, err
	}
	defer f.Close()
	return w.put(ctx, f, body, size)
}

// writing is a file that is to be put.
type writing struct {
	path   string
	change Change
}

func newWriting(ref FileRef, mode string, parents *bool, match, noneMatch string) (*writing, error) {
	bits, err := modeOf(mode)
	if err != nil {
		return nil, err
	}
	condition, err := conditionOf(match, noneMatch)
	if err != nil {
		return nil, err
	}
	return &writing{ref.Path, Change{
		Path: ref.Path, Mode: bits, If: condition, Parents: parents == nil || *parents,
	}}, checkPath("path", ref.Path)
}

// put stages content and puts it in the file's place.
func (w *writing) put(ctx context.Context, f *folder, content io.Reader, size int64) (WrittenFile, error) {
	old, there, err := f.before(ctx, w.path, w.change.If)
	if err != nil {
		return WrittenFile{}, err
	}
	claim := f.claim()
	made := false
	defer func() { claim.settle(made) }()
	if err := claim.grow(ctx, f.needs(ctx, w.path, there, max(0, size), old)); err != nil {
		return WrittenFile{}, err
	}
	done, err := w.commit(ctx, f, &metered{ctx: ctx, claim: claim, from: content, free: blocks(old)})
	made = err == nil
	return done, err
}

func (w *writing) commit(ctx context.Context, f *folder, content io.Reader) (WrittenFile, error) {
	staged, err := f.Stage(ctx, content, -1)
	if err != nil {
		return WrittenFile{}, err
	}
	defer staged.Discard()
	change := w.change
	change.Put = staged
	done, err := f.commit(ctx, []Change{change})
	if err != nil {
		return WrittenFile{}, err
	}
	info := done[0].Info
	return WrittenFile{
		Path: shownPath(w.path), Created: done[0].Created, SizeBytes: info.Size,
		Mode: modeText(info.Mode), ETag: info.ETag,
	}, nil
}

// commit makes changes, which a reset waits for.
func (f *folder) commit(ctx context.Context, changes []Change) (done []Committed, err error) {
	err = f.during(ctx, func() (err error) {
		done, err = f.Commit(ctx, changes)
		return err
	})
	return done, err
}

// extend puts content after what the file holds: what is read for that must still be
// there when it is replaced, else it is done anew.
func (w *writing) extend(ctx context.Context, f *folder, content []byte) (done WrittenFile, err error) {
	asked := w.change.If
	err = untilAlone(func() (err error) {
		done, err = w.extendOnce(ctx, f, asked, content)
		return err
	}, func(error) bool { return !asked.isEmpty() })
	return done, err
}

func (w *writing) extendOnce(ctx context.Context, f *folder, asked Condition, content []byte) (WrittenFile, error) {
	old, err := f.Open(ctx, w.path)
	if hasCode(err, CodeNotFound) {
		if !asked.holds("") {
			return WrittenFile{}, asked.mismatch(w.path, "")
		}
		w.change.If = Condition{Absent: true}
		return w.put(ctx, f, bytes.NewReader(content), int64(len(content)))
	}
	if err != nil {
		return WrittenFile{}, err
	}
	defer old.Close()
	tag, err := old.ETag(ctx, true)
	if err != nil {
		return WrittenFile{}, err
	}
	if !asked.holds(tag) {
		return WrittenFile{}, asked.mismatch(w.path, tag)
	}
	w.change.If = Condition{Match: []string{tag}}
	size := old.Info().Size
	all := io.MultiReader(io.NewSectionReader(old, 0, size), bytes.NewReader(content))
	return w.put(ctx, f, all, size+int64(len(content)))
}

// before gives the size of the file that is to be replaced, and refuses what cannot be
// done or does not hold already, so that a body need not be read for it. What stands
// there may be another when the change is made: then that is judged again.
func (f *folder) before(ctx context.Context, path string, condition Condition) (size int64, there bool, err error) {
	file, err := f.Open(ctx, path)
	switch {
	case hasCode(err, CodeNotFound):
		if !condition.holds("") {
			return 0, false, condition.mismatch(path, "")
		}
		return 0, false, nil
	case hasCode(err, CodePermissionDenied):
		return 0, true, nil // it may be replaced all the same, or not: that is seen then
	case err != nil:
		return 0, false, err
	}
	defer file.Close()
	size = file.Info().Size
	if condition.isEmpty() || !f.service.wantsTag(nil, size) {
		return size, true, nil
	}
	tag, err := file.ETag(ctx, false)
	if hasCode(err, CodeUnavailable) {
		return size, true, nil
	}
	if err == nil && !condition.holds(tag) {
		err = condition.mismatch(path, tag)
	}
	return size, true, err
}

// needs says how much more the folder holds with a file of a size at a path.
func (f *folder) needs(ctx context.Context, at string, there bool, size, old int64) DiskUse {
	if there {
		return DiskUse{Bytes: max(0, blocks(size)-blocks(old))}
	}
	use := DiskUse{Bytes: blocks(size), Files: 1}
	return use.plus(f.missing(ctx, at))
}

// missing says what the directories on the way to a path that are missing will take.
func (f *folder) missing(ctx context.Context, at string) DiskUse {
	var use DiskUse
	for dir := path.Dir(strings.TrimRight(at, "/")); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if _, err := f.Stat(ctx, dir, false); !hasCode(err, CodeNotFound) {
			break
		}
		use = use.plus(DiskUse{blockSize, 1})
	}
	return use
}
