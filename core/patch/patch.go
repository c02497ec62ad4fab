// Package patch reads patches and applies them: unified diffs, with git's
// extensions, and the form that begins with *** Begin Patch.
//
// A hunk is applied where the patch says, or else in the one place where its
// lines stand; its lines must stand there to the byte. A count of lines that is
// wrong, as it often is in what a model wrote, is mended where the lines say what
// was meant. What cannot be placed without a guess is rejected, and then nothing
// of the patch is applied.
//
// It knows nothing of files: paths come back as they stand in the patch, .. and
// absolute ones too, and whether they may be touched is the caller's question. It
// does not protect against a patch that fits and is wrong.
package patch

import (
	"fmt"
	"strings"
)

const (
	maxBytes = 16 << 20  // of a patch; larger ones are better sent as files
	maxLines = 2_000_000 // of a patch; each takes some ten bytes beside its own
	maxFiles = 1000      // of a patch; each is read and written on its own
)

// Patch is changes to files.
type Patch struct {
	Files []File // in the order of the patch; a path may be there several times
}

// Kind is what happens to a file.
type Kind string

// The kinds.
const (
	Created  Kind = "created"
	Modified Kind = "modified"
	Deleted  Kind = "deleted"
	Renamed  Kind = "renamed"
	Copied   Kind = "copied"
)

// File is a change to a file.
type File struct {
	Old string // its path before; "" where it is created
	New string // its path after; "" where it is deleted
	Kind
	OldMode, NewMode *uint32 // as git writes them (0100644); nil where the patch names none

	hunks  []hunk
	binary *binary
	crlf   bool // whether all lines of the patch end with CRLF, its own ones too
	whole  bool // whether it is of git: what is moved or deleted is as it was before the whole patch
	blind  bool // whether it is deleted whatever it holds, since the form shows none of it
	blank  bool // whether a file that is not there counts as empty: diff -N says no more of it
}

// path is how a file is named in answers.
func (f *File) path() string {
	if f.New != "" {
		return f.New
	}
	return f.Old
}

// pathBefore is where what it is made of was.
func (f *File) pathBefore() string {
	if f.Old != "" {
		return f.Old
	}
	return f.New
}

// RejectedError says that a patch cannot be read, or does not fit.
type RejectedError struct {
	File   string // its path, "" where it is about no single one
	Hunk   int    // which of the file's, from 1; 0 where it is about no single one
	Reason string
}

func (e *RejectedError) Error() string {
	switch {
	case e.Hunk > 0:
		return fmt.Sprintf("%q: hunk %d: %s", e.File, e.Hunk, e.Reason)
	case e.File != "":
		return fmt.Sprintf("%q: %s", e.File, e.Reason)
	}
	return e.Reason
}

// Parse reads a patch. Strip is how many leading parts are taken off each path of
// a unified diff; nil is 1 where all of them begin as git writes them (a/ and b/, or
// i/ and w/ and the like), else 0.
func Parse(text string, strip *int) (*Patch, error) {
	if len(text) > maxBytes {
		return nil, &RejectedError{Reason: fmt.Sprintf("the patch has %d bytes, and %d are allowed; send it in parts", len(text), maxBytes)}
	}
	if strings.Count(text, "\n") > maxLines {
		return nil, &RejectedError{Reason: fmt.Sprintf("the patch has more than %d lines; send it in parts", maxLines)}
	}
	s := &source{lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	n := strings.Count(text, "\n")
	s.crlf = n > 0 && n == strings.Count(text, "\r\n")
	var files []File
	var err error
	if s.seekBegin() {
		files, err = s.begun()
	} else {
		files, err = s.unified(strip)
	}
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, &RejectedError{Reason: "there is no file in it: a unified diff names files with --- and +++ lines, the other form begins with *** Begin Patch"}
	}
	return &Patch{Files: files}, nil
}

// source is a patch that is being read.
type source struct {
	lines []string // without their line feeds
	at    int      // the next one
	crlf  bool
}

// peek gives a line that is still to be read, without a CR at its end, "" after the last.
func (s *source) peek(ahead int) string {
	if s.at+ahead >= len(s.lines) {
		return ""
	}
	return strings.TrimSuffix(s.lines[s.at+ahead], "\r")
}

func (s *source) more() bool { return s.at < len(s.lines) }

// reject makes an error about the line that is next.
func (s *source) reject(file string, hunk int, format string, args ...any) error {
	return &RejectedError{File: file, Hunk: hunk, Reason: fmt.Sprintf(format, args...) + fmt.Sprintf(" (line %d of the patch)", s.at+1)}
}
