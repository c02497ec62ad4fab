// Package problem is the form that a failure has over HTTP: a status for every
// code of core, and the document of RFC 9457. It shows what a core.Error holds
// for callers and nothing else; the private cause stays out of it.
package problem

import (
	"maps"
	"net/http"
	"strings"

	"envapi/core"
)

// MediaType is the Content-Type of a Document.
const MediaType = "application/problem+json"

var statuses = map[core.Code]int{
	core.CodeInvalidArgument:     http.StatusBadRequest,
	core.CodeUnauthenticated:     http.StatusUnauthorized,
	core.CodeInsufficientScope:   http.StatusForbidden,
	core.CodeNetworkRefused:      http.StatusForbidden,
	core.CodeOriginRefused:       http.StatusForbidden,
	core.CodeNotFound:            http.StatusNotFound,
	core.CodeMethodNotAllowed:    http.StatusMethodNotAllowed,
	core.CodeEnvironmentBusy:     http.StatusConflict,
	core.CodeEnvironmentArchived: http.StatusConflict,
	core.CodeIdempotencyMismatch: http.StatusConflict,
	core.CodeQuotaExceeded:       http.StatusConflict,
	core.CodeShellBusy:           http.StatusConflict,
	core.CodeProcessReplaced:     http.StatusConflict,
	core.CodeInputClosed:         http.StatusConflict,
	core.CodeShellClosed:         http.StatusGone,
	core.CodeOutputExpired:       http.StatusGone,
	core.CodeTooLarge:            http.StatusRequestEntityTooLarge,
	core.CodeUnsupportedEncoding: http.StatusUnsupportedMediaType,
	core.CodeRangeUnsatisfiable:  http.StatusRequestedRangeNotSatisfiable,
	core.CodeRateLimited:         http.StatusTooManyRequests,
	core.CodeInternal:            http.StatusInternalServerError,
	core.CodeUnavailable:         http.StatusServiceUnavailable,
	core.CodeDiskFull:            http.StatusInsufficientStorage,
	core.CodePermissionDenied:    http.StatusForbidden,
	core.CodePathOutside:         http.StatusForbidden,
	core.CodeAlreadyExists:       http.StatusConflict,
	core.CodeNotEmpty:            http.StatusConflict,
	core.CodeNotRegular:          http.StatusConflict,
	core.CodeIsADirectory:        http.StatusConflict,
	core.CodeNotADirectory:       http.StatusConflict,
	core.CodeSymlinkLoop:         http.StatusConflict,
	core.CodeETagMismatch:        http.StatusPreconditionFailed,
	core.CodeEditNoMatch:         http.StatusUnprocessableEntity,
	core.CodeEditAmbiguous:       http.StatusUnprocessableEntity,
	core.CodePatchRejected:       http.StatusUnprocessableEntity,
}

// Status gives the HTTP status of a code; 500 for one that it does not know.
func Status(code core.Code) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// Type gives the URI that names the problem of a code.
func Type(code core.Code) string { return "urn:envapi:problem:" + string(code) }

// Title gives the short text of a code, the same for each of its problems.
func Title(code core.Code) string {
	words := strings.ReplaceAll(string(code), "_", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}

// Document gives the members of the problem document for e: those of RFC 9457,
// the code, and the code's own. The instance is the request's id.
func Document(e *core.Error, requestID string) map[string]any {
	document := maps.Clone(e.Facts)
	if document == nil {
		document = map[string]any{}
	}
	document["type"] = Type(e.Code)
	document["title"] = Title(e.Code)
	document["status"] = Status(e.Code)
	document["detail"] = e.Detail
	document["instance"] = requestID
	document["code"] = e.Code
	return document
}
