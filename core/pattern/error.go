// Package pattern holds what a search is made of: globs over paths, the rules of
// .gitignore files, and patterns that are looked for in lines.
//
// What it is given is hostile: a pattern may be any bytes of a caller's, and the rules
// any bytes of a program's inside. All of them are bounded so that the time of one
// question is at most a small multiple of their length times that of what they are
// asked about.
//
// What is not protected: how many such questions are asked. A search with a dear
// pattern over many files ends when its caller's time does.
package pattern

import "fmt"

// Error says what is wrong with a pattern: a sentence without its beginning, for the
// one who wrote the pattern.
type Error struct{ Reason string }

func (e *Error) Error() string { return e.Reason }

func errorf(format string, args ...any) *Error {
	return &Error{Reason: fmt.Sprintf(format, args...)}
}
