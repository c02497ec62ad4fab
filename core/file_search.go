package core

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"envapi/core/pattern"
)

const (
	defaultEntries = 200
	largestEntries = 1000
	defaultMatches = 100
	largestMatches = 2000
	defaultFound   = 64 << 10 // of text, in bytes
	largestFound   = 1 << 20
	maxContext     = 20 // lines
)

// ListFiles gives a page of the entries of a directory, in the order of their paths.
func (s *Service) ListFiles(ctx context.Context, c Caller, in ListFilesInput) (FileList, error) {
	q, err := in.query()
	if err != nil {
		return FileList{}, err
	}
	f, err := s.readFolder(ctx, c, in.EnvironmentID, in.Restoring)
	if err != nil {
		return FileList{}, err
	}
	defer f.Close()
	bounded, cancel := context.WithTimeout(ctx, searchBound)
	defer cancel()
	found, err := f.List(bounded, q)
	if err != nil {
		return FileList{}, err
	}
	list := FileList{
		Items: make([]FileEntry, len(found.Entries)), Unreadable: shownPaths(found.Unreadable),
		SkippedHidden: found.SkippedHidden, SkippedIgnored: found.SkippedIgnored,
	}
	for i, info := range found.Entries {
		list.Items[i] = entryOf(info)
	}
	if found.Next != "" {
		list.NextCursor = in.cursor(found.Next)
	}
	return list, nil
}

func (in ListFilesInput) query() (ListQuery, error) {
	q := ListQuery{
		Path: in.Path, Depth: 1, Globs: globs(in.Glob), Hidden: in.Hidden, Ignored: in.Ignored,
		Limit: cmp.Or(in.Limit, defaultEntries),
	}
	if q.Limit < 1 || q.Limit > largestEntries {
		return q, invalid("limit", "limit is %d: give 1 to %d", q.Limit, largestEntries)
	}
	switch {
	case in.Depth != nil && *in.Depth < 1:
		return q, invalid("depth", "depth is %d: give 1 or more", *in.Depth)
	case in.Depth != nil:
		q.Depth = *in.Depth
	case in.Recursive || in.Glob != "":
		q.Depth = 0
	}
	var err error
	q.After, err = in.after()
	return q, firstError(err, checkNUL("path", in.Path), checkGlob(in.Glob))
}

// checkGlob refuses globs that no path below a directory matches, which are taken for
// paths.
func checkGlob(glob string) error {
	if strings.HasPrefix(glob, "/workspace/") || glob == ".." || strings.HasPrefix(glob, "../") || strings.HasPrefix(glob, "./") {
		return invalid("glob", "cannot match %.200q: globs are relative to path, without /workspace or dots before them, for example src/**/*.go; give the directory as path", glob)
	}
	return nil
}

func globs(glob string) []string {
	if glob == "" {
		return nil
	}
	return []string{glob}
}

// cursorHash is how much of a query's hash a cursor carries: to find mistakes, not
// malice, since a cursor opens nothing.
const cursorHash = 8

// cursor names the last path of a page, and which query it is of.
func (in ListFilesInput) cursor(last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(in.hash() + last))
}

func (in ListFilesInput) after() (string, error) {
	if in.Cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(in.Cursor)
	if err != nil || len(raw) <= cursorHash || string(raw[:cursorHash]) != in.hash() {
		return "", invalid("cursor", "cannot read the cursor: give the next_cursor of a page of this very query, or leave it out for the first page")
	}
	return string(raw[cursorHash:]), nil
}

// hash stands for the query, its page aside.
func (in ListFilesInput) hash() string {
	in.Cursor, in.Limit = "", 0
	text, err := json.Marshal(in)
	if err != nil {
		panic(fmt.Sprintf("core: cannot write an input: %v", err))
	}
	sum := sha256.Sum256(text)
	return string(sum[:cursorHash])
}

// SearchFiles looks for lines of files, or for files by name, until some time has
// passed; then it gives what it has.
func (s *Service) SearchFiles(ctx context.Context, c Caller, in SearchFilesInput) (SearchedFiles, error) {
	q, err := in.query()
	if err != nil {
		return SearchedFiles{}, err
	}
	f, err := s.readFolder(ctx, c, in.EnvironmentID, in.Restoring)
	if err != nil {
		return SearchedFiles{}, err
	}
	defer f.Close()
	bounded, cancel := context.WithTimeout(ctx, searchBound)
	defer cancel()
	found, err := f.Search(bounded, q)
	if err != nil {
		return SearchedFiles{}, err
	}
	return shownSearch(found), nil
}

func (in SearchFilesInput) query() (SearchQuery, error) {
	q := SearchQuery{
		Path: in.Path, Pattern: cmp.Or(in.Literal, in.Pattern), Literal: in.Literal != "",
		Multiline: in.Multiline, Globs: globs(in.Glob), Hidden: in.Hidden, Ignored: in.Ignored,
		Context: value(in.Context, 0), Limit: cmp.Or(in.Limit, defaultMatches),
		MaxBytes: cmp.Or(in.LimitBytes, defaultFound), NamesOnly: in.FilesOnly,
	}
	switch {
	case in.Literal != "" && in.Pattern != "":
		return q, invalid("literal", "pattern and literal are both given: give one of them")
	case q.Limit < 1 || q.Limit > largestMatches:
		return q, invalid("limit", "limit is %d: give 1 to %d", q.Limit, largestMatches)
	case q.MaxBytes < 1 || q.MaxBytes > largestFound:
		return q, invalid("limit_bytes", "limit_bytes is %d: give 1024 to %d", q.MaxBytes, largestFound)
	case q.Context < 0 || q.Context > maxContext:
		return q, invalid("context", "context is %d: give 0 to %d", q.Context, maxContext)
	}
	q.Fold = in.Case == "insensitive" || in.Case == "smart" && !pattern.HasCapital(q.Pattern, q.Literal)
	return q, firstError(checkNUL("path", in.Path), checkGlob(in.Glob))
}

func shownSearch(found SearchResult) SearchedFiles {
	shown := SearchedFiles{
		Matches: make([]FileMatch, len(found.Matches)), TotalMatches: found.TotalMatches,
		FilesMatched: found.FilesMatched, FilesSearched: found.FilesSearched, Truncated: found.Truncated,
		SkippedHidden: found.SkippedHidden, SkippedIgnored: found.SkippedIgnored,
		SkippedBinary: found.SkippedBinary, SkippedLarge: found.SkippedLarge,
		Unreadable: shownPaths(found.Unreadable),
	}
	for i, m := range found.Matches {
		shown.Matches[i] = FileMatch{
			Path: shownPath(m.Path), Line: m.Line, Column: m.Column, Text: shownPath(m.Text), Cut: m.Cut,
			Count: m.Count, Before: shownPaths(m.Before), After: shownPaths(m.After),
		}
	}
	shown.Next = nextSearch(found)
	return shown
}

// nextSearch says what to do where something was left out.
func nextSearch(found SearchResult) string {
	var advice []string
	switch found.Truncated {
	case "limit":
		advice = append(advice, "There are more matches: raise limit, or narrow the search by path or glob.")
	case "bytes":
		advice = append(advice, "There is more text: raise limit_bytes, or narrow the search by path or glob.")
	case "time":
		advice = append(advice, "Time ran out before all was searched: narrow the search by path or glob.")
	}
	if found.SkippedIgnored > 0 {
		advice = append(advice, "What .gitignore rules exclude was not searched: ignored does.")
	}
	if found.SkippedHidden > 0 {
		advice = append(advice, "Names that begin with a dot were not searched: hidden does.")
	}
	if found.SkippedLarge > 0 {
		advice = append(advice, "Files that are too long for a search were not searched: use a command.")
	}
	return strings.Join(advice, " ")
}
