package core

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// Code names a kind of failure. The set is closed: callers switch on it, and
// the adapters map it to their own statuses.
type Code string

// The codes that the operations of this package answer with.
const (
	CodeInvalidArgument     Code = "invalid_argument"
	CodeUnauthenticated     Code = "unauthenticated"
	CodeInsufficientScope   Code = "insufficient_scope"
	CodeNetworkRefused      Code = "network_refused"
	CodeOriginRefused       Code = "origin_refused"
	CodeNotFound            Code = "not_found"
	CodeMethodNotAllowed    Code = "method_not_allowed"
	CodeEnvironmentBusy     Code = "environment_busy"
	CodeEnvironmentArchived Code = "environment_archived"
	CodeIdempotencyMismatch Code = "idempotency_mismatch"
	CodeQuotaExceeded       Code = "quota_exceeded"
	CodeShellBusy           Code = "shell_busy"
	CodeProcessReplaced     Code = "process_replaced"
	CodeInputClosed         Code = "input_closed"
	CodeShellClosed         Code = "shell_closed"
	CodeOutputExpired       Code = "output_expired"
	CodeTooLarge            Code = "too_large"
	CodeUnsupportedEncoding Code = "unsupported_encoding"
	CodeRangeUnsatisfiable  Code = "range_not_satisfiable"
	CodeRateLimited         Code = "rate_limited"
	CodeInternal            Code = "internal"
	CodeUnavailable         Code = "unavailable"
	CodeDiskFull            Code = "disk_full"
	CodePermissionDenied    Code = "permission_denied"
	CodePathOutside         Code = "path_outside_workspace"
	CodeAlreadyExists       Code = "already_exists"
	CodeNotEmpty            Code = "not_empty"
	CodeNotRegular          Code = "not_a_regular_file"
	CodeIsADirectory        Code = "is_a_directory"
	CodeNotADirectory       Code = "not_a_directory"
	CodeSymlinkLoop         Code = "symlink_loop"
	CodeETagMismatch        Code = "etag_mismatch"
	CodeEditNoMatch         Code = "edit_no_match"
	CodeEditAmbiguous       Code = "edit_ambiguous"
	CodePatchRejected       Code = "patch_rejected"
)

// CodeInfo describes a code for the documents that are made from this table.
type CodeInfo struct {
	Code    Code
	Meaning string
	Members []string // the names of Error.Facts that come with it
}

// Codes lists every code, in the order of the documents.
var Codes = []CodeInfo{
	{CodeInvalidArgument, "An input is missing, unknown, malformed or out of range.", []string{"field"}},
	{CodeUnauthenticated, "There is no token, or it does not verify.", nil},
	{CodeInsufficientScope, "The token lacks a scope that the operation needs.", []string{"scope"}},
	{CodeNetworkRefused, "The network was asked for where the deployment or the environment has none.", nil},
	{CodeOriginRefused, "The Host or Origin header names a site that this service does not answer, so that no web page can reach it through a browser.", nil},
	{CodePermissionDenied, "The file's own mode or owner forbids it.", []string{"path"}},
	{CodePathOutside, "The path leads out of the workspace.", []string{"path"}},
	{CodeNotFound, "There is no such thing, or it is not the caller's.", nil},
	{CodeMethodNotAllowed, "The route exists, but not for this method.", nil},
	{CodeEnvironmentBusy, "The environment is in a passing state; try again.", []string{"state", "retry_after_ms"}},
	{CodeEnvironmentArchived, "The environment is archived, and the call was not to restore it; restore_environment does.", nil},
	{CodeAlreadyExists, "Something is there already.", []string{"path"}},
	{CodeNotEmpty, "The directory has entries.", []string{"path"}},
	{CodeNotRegular, "It is a FIFO, a socket, a device or a link and no regular file; it was not opened.", []string{"path"}},
	{CodeIsADirectory, "It is a directory and no file.", []string{"path"}},
	{CodeNotADirectory, "It, or something on the way to it, is no directory.", []string{"path"}},
	{CodeSymlinkLoop, "The links on the way lead in a circle.", []string{"path"}},
	{CodeIdempotencyMismatch, "The idempotency key was used before with another input.", nil},
	{CodeQuotaExceeded, "A limit would be passed.", []string{"limit", "allowed", "used"}},
	{CodeShellBusy, "A command runs in the shell, or is in line there.", []string{"command_id"}},
	{CodeProcessReplaced, "Another process has this pid now: the one that was meant has ended.", nil},
	{CodeInputClosed, "Nothing reads there: the program has ended, or was never given an input.", nil},
	{CodeShellClosed, "The shell has ended.", []string{"reason"}},
	{CodeOutputExpired, "The output at this offset was dropped.", []string{"next_offset"}},
	{CodeETagMismatch, "A condition does not hold; `etag` is what the file has now, null where there is none.", []string{"path", "etag"}},
	{CodeTooLarge, "The input is larger than allowed.", []string{"allowed_bytes"}},
	{CodeUnsupportedEncoding, "The body's media type or encoding is not supported.", nil},
	{CodeRangeUnsatisfiable, "The range asked for begins beyond the end; `total_bytes` is where that is.", []string{"total_bytes"}},
	{CodeEditNoMatch, "The text to replace is not in the file; `matches` are the lines nearest to it.", []string{"path", "edit", "matches"}},
	{CodeEditAmbiguous, "The text to replace is there more than once; `matches` are the lines where.", []string{"path", "edit", "matches"}},
	{CodePatchRejected, "The patch does not fit; nothing was changed.", []string{"file", "hunk"}},
	{CodeRateLimited, "The account asks too often, or has too much open or under way at one time; the detail says what. Try again after the time that it says.", []string{"retry_after_ms"}},
	{CodeInternal, "The service failed; the request id finds the cause in its log.", nil},
	{CodeUnavailable, "The service cannot do this now; try again.", []string{"retry_after_ms"}},
	{CodeDiskFull, "The host's disk is full.", nil},
}

// Error is a failure that a caller may see. An error means that it was not
// done; what a command did (its exit code, its death) is data, never an Error.
type Error struct {
	Code   Code
	Detail string         // public: what failed, why, and what to do
	Facts  map[string]any // public: the members of this code, see Codes
	cause  error          // private: for the log only
}

// Errorf makes an Error with a public text and no cause.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// With adds a public fact and returns e.
func (e *Error) With(name string, value any) *Error {
	if e.Facts == nil {
		e.Facts = map[string]any{}
	}
	e.Facts[name] = value
	return e
}

// Because records the private cause and returns e.
func (e *Error) Because(cause error) *Error {
	e.cause = cause
	return e
}

// Error gives the public text and, for logs, the private cause.
func (e *Error) Error() string {
	if e.cause == nil {
		return string(e.Code) + ": " + e.Detail
	}
	return string(e.Code) + ": " + e.Detail + ": " + e.cause.Error()
}

// Unwrap gives the private cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.cause }

// AsError gives err as an Error. What is not one is `internal`: nothing of the
// inside reaches a caller.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if OutOfFiles(err) {
		return Errorf(CodeUnavailable, "the service has as many files open as it may; try again later").
			With("retry_after_ms", retryAfter.Milliseconds()).Because(err)
	}
	return Errorf(CodeInternal, "the service failed; look for the request id in its log").Because(err)
}

// OutOfFiles says that an error is for want of descriptors, which is no mistake of the
// service's but something that its operator must know of.
func OutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// invalid makes an `invalid_argument` for one field.
func invalid(field, format string, args ...any) *Error {
	return Errorf(CodeInvalidArgument, format, args...).With("field", field)
}

// NotFound is the one answer for what never existed and for what belongs to
// another caller. An id of another kind is told for what it is.
func NotFound(kind, id string) *Error {
	advice := fmt.Sprintf("list_%ss gives those that are yours", kind)
	for other, prefix := range map[string]string{"environment": idEnvironment, "command": idCommand, "shell": idShell} {
		if other != kind && strings.HasPrefix(id, prefix) {
			advice = "this looks like the id of a thing of another kind, " + other
		}
	}
	return Errorf(CodeNotFound, "there is no %s %q: %s", kind, id, advice)
}

// ErrNoRecord is what a Store answers for a record that is absent or another's.
var ErrNoRecord = errors.New("no such record")
