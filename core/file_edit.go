package core

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"envapi/core/edit"
)

const (
	// maxEditBytes bounds a file that is edited, before and after: it is held in
	// memory, some times over.
	maxEditBytes = 16 << 20
	maxEdits     = 1000
	// maxDiffBytes is how much of a diff is answered.
	maxDiffBytes = 64 << 10
)

// EditFile makes exact replacements in a file: all, or none. It fails with
// `edit_no_match`, `edit_ambiguous`, `unsupported_encoding`, `etag_mismatch`,
// `too_large` and the codes of paths.
func (s *Service) EditFile(ctx context.Context, c Caller, in EditFileInput) (EditedFile, error) {
	if err := in.check(); err != nil {
		return EditedFile{}, err
	}
	f, err := s.changeFolder(ctx, c, in.EnvironmentID, in.Restoring)
	if err != nil {
		return EditedFile{}, err
	}
	defer f.Close()
	asked := Condition{Match: tagsOf(in.IfMatch)}
	var done EditedFile
	err = untilAlone(func() (err error) {
		done, err = f.edit(ctx, in, asked)
		return err
	}, func(error) bool { return !asked.isEmpty() })
	return done, err
}

func (in EditFileInput) check() error {
	switch {
	case len(in.Edits) == 0:
		return invalid("edits", "edits is empty: give at least one replacement")
	case len(in.Edits) > maxEdits:
		return invalid("edits", "edits has %d entries: give at most %d", len(in.Edits), maxEdits)
	}
	for i, e := range in.Edits {
		if e.Old == "" {
			return invalid(fmt.Sprintf("edits[%d].old", i), "edits[%d].old is empty: give the text to replace; write_file fills an empty file", i)
		}
	}
	return checkPath("path", in.Path)
}

// edit makes the edits once.
func (f *folder) edit(ctx context.Context, in EditFileInput, asked Condition) (EditedFile, error) {
	old, _, err := f.whole(ctx, in.Path, maxEditBytes)
	if hasCode(err, CodeNotFound) && !asked.isEmpty() {
		err = mismatch(in.Path, "")
	}
	if err != nil {
		return EditedFile{}, err
	}
	tag := contentTag(old)
	if !asked.holds(tag) {
		return EditedFile{}, mismatch(in.Path, tag)
	}
	result, err := edit.Apply(old, in.replacements(), maxEditBytes)
	if err != nil {
		return EditedFile{}, editFailure(in.Path, err)
	}
	done := EditedFile{
		Path: in.Path, Replacements: result.Replacements, DryRun: in.DryRun,
		SizeBytes: int64(len(result.Content)), ETag: contentTag(result.Content),
		Diff: edit.Diff(in.Path, old, result.Content, maxDiffBytes),
	}
	if in.DryRun || bytes.Equal(old, result.Content) {
		return done, nil
	}
	change := Change{Path: in.Path, If: Condition{Match: []string{tag}}}
	w := writing{path: in.Path, change: change}
	_, err = w.put(ctx, f, bytes.NewReader(result.Content), done.SizeBytes)
	return done, err
}

func (in EditFileInput) replacements() []edit.Edit {
	edits := make([]edit.Edit, len(in.Edits))
	for i, e := range in.Edits {
		edits[i] = edit.Edit{Old: e.Old, New: e.New, All: e.ReplaceAll}
	}
	return edits
}

// editFailure says in the caller's words why edits were not made.
func editFailure(path string, err error) error {
	var none *edit.NoMatchError
	var several *edit.AmbiguousError
	var limit *edit.LimitError
	var foreign *edit.EncodingError
	switch {
	case errors.As(err, &none):
		matches := []map[string]any{}
		for _, line := range none.Nearest {
			matches = append(matches, map[string]any{"line": line.Number, "text": line.Text})
		}
		return Errorf(CodeEditNoMatch, "%v", err).With("path", path).With("edit", none.Edit).With("matches", matches)
	case errors.As(err, &several):
		matches := []map[string]any{}
		for _, line := range several.Lines {
			matches = append(matches, map[string]any{"line": line})
		}
		return Errorf(CodeEditAmbiguous, "%v", err).With("path", path).With("edit", several.Edit).With("matches", matches)
	case errors.As(err, &foreign):
		return Errorf(CodeUnsupportedEncoding, "%v", err).With("path", path).With("edit", foreign.Edit)
	case errors.As(err, &limit):
		return Errorf(CodeTooLarge, "%v", err).With("allowed_bytes", limit.Limit)
	}
	return err
}

// whole reads a file that has at most limit bytes.
func (f *folder) whole(ctx context.Context, path string, limit int64) ([]byte, FileInfo, error) {
	file, err := f.Open(ctx, path)
	if err != nil {
		return nil, FileInfo{}, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.NewSectionReader(file, 0, limit+1))
	if err != nil {
		return nil, FileInfo{}, fmt.Errorf("cannot read a file: %w", err)
	}
	if int64(len(content)) > limit {
		return nil, FileInfo{}, Errorf(CodeTooLarge, "%q has more than the %d bytes that can be edited in one call: change it with a command", shownPath(path), limit).
			With("allowed_bytes", limit)
	}
	return content, file.Info(), nil
}

// contentTag is the ETag of content: the first 24 bytes of its SHA-256.
func contentTag(content []byte) string {
	sum := sha256.Sum256(content)
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}
