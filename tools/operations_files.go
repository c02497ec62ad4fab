package tools

import (
	"net/http"
	"slices"

	"envapi/core"
)

// filesPath is where the routes of files are.
const filesPath = "/v1/environments/{environment_id}/files"

// pathErrors are the codes of whatever names a path. There may be no room to restore an
// archived environment for it.
var pathErrors = []core.Code{
	core.CodeNotFound, core.CodeEnvironmentBusy, core.CodePathOutside, core.CodePermissionDenied,
	core.CodeNotADirectory, core.CodeSymlinkLoop,
	core.CodeEnvironmentArchived, core.CodeQuotaExceeded, core.CodeDiskFull,
}

// readErrors are those of what reads one file.
var readErrors = slices.Concat(pathErrors, []core.Code{core.CodeIsADirectory, core.CodeNotRegular})

// writeErrors are those of what writes one.
var writeErrors = slices.Concat(readErrors, []core.Code{
	core.CodeAlreadyExists, core.CodeETagMismatch, core.CodeTooLarge,
})

// without takes a code out that the operation never has.
func without(codes []core.Code, code core.Code) []core.Code {
	return slices.DeleteFunc(slices.Clone(codes), func(c core.Code) bool { return c == code })
}

func fileRows() []Operation {
	return slices.Concat(lookRows(), contentRows(), changeRows(), manageRows(), streamRows())
}

func lookRows() []Operation {
	return []Operation{
		Define(Operation{
			Name: "list_files", Title: "List files", Noun: files,
			Description: "Lists a directory of an environment's workspace, in the order of paths, page by page. With recursive, depth or glob it goes into the directories below. Names with a leading dot and what .gitignore excludes are left out, and counted, unless asked for.",
			Method:      http.MethodGet, Path: filesPath, Scope: core.ScopeFilesRead,
			Hints:   Hints{ReadOnly: true, Idempotent: true},
			Success: done(),
			Errors:  pathErrors,
		}, (*core.Service).ListFiles),
		Define(Operation{
			Name: "stat_file", Title: "Look at a file", Noun: files,
			Description: "Tells what stands at a path: its type, size, mode, times and ETag. A link is not followed.",
			Method:      http.MethodGet, Path: filesPath + "/stat", Scope: core.ScopeFilesRead,
			Hints:   Hints{ReadOnly: true, Idempotent: true},
			Toolset: Management,
			Success: done(),
			Errors:  pathErrors,
		}, (*core.Service).StatFile),
		Define(Operation{
			Name: "read_file", Title: "Read a file", Noun: files,
			Description: "Reads a file as text, whole or by lines or bytes, bounded by limit_bytes; next_offset and next_line say where to go on. It gives the ETag to change the file under if_match, and how its lines end. What is not UTF-8 comes as base64.",
			Method:      http.MethodGet, Path: filesPath + "/text", Scope: core.ScopeFilesRead,
			Hints:   Hints{ReadOnly: true, Idempotent: true},
			Success: done(),
			Errors:  readErrors,
		}, (*core.Service).ReadFile),
		Define(Operation{
			Name: "search_files", Title: "Search files", Noun: files,
			Description: "Finds lines of files by a regular expression (RE2) or a literal text, or, with neither, files by name with glob. What .gitignore excludes, names with a leading dot and binary files are left out, and counted.",
			Method:      http.MethodPost, Path: filesPath + "/search", Scope: core.ScopeFilesRead,
			Hints:   Hints{ReadOnly: true, Idempotent: true},
			Success: done(),
			Errors:  without(readErrors, core.CodeIsADirectory),
		}, (*core.Service).SearchFiles),
	}
}

func contentRows() []Operation {
	return []Operation{
		Define(Operation{
			Name: "write_file", Title: "Write a file", Noun: files,
			Description: "Makes a file hold exactly the content given, or with append puts it after what is there. It is all or nothing, and durable when answered; mode and owner of an existing file stay, and a link inside the workspace is followed. Use if_match with the ETag you read, or if_none_match * for a new file, so that nobody's change is lost. One call carries about 12 MiB at most: more is put there in parts, with append, or over REST in one by upload.",
			Method:      http.MethodPost, Path: filesPath + "/write", Scope: core.ScopeFilesWrite,
			Hints:   Hints{Destructive: true},
			Success: done(),
			Errors:  writeErrors,
		}, (*core.Service).WriteFile),
		Define(Operation{
			Name: "edit_file", Title: "Edit a file", Noun: files,
			Description: "Replaces exact texts in a file: all of the edits are made, or none. Each old text must be there once, unless replace_all; where it is not, the answer says which lines are nearest, and where it is several times, in which lines. Nothing else of the file changes, its encoding and line ends neither. With dry_run it only shows the diff. A file above 16 MiB is changed by a command, or written anew.",
			Method:      http.MethodPost, Path: filesPath + "/edit", Scope: core.ScopeFilesWrite,
			Hints:   Hints{Destructive: true},
			Success: done(),
			Errors:  append(slices.Clone(writeErrors), core.CodeEditNoMatch, core.CodeEditAmbiguous),
		}, (*core.Service).EditFile),
		Define(Operation{
			Name: "apply_patch", Title: "Apply a patch", Noun: files,
			Description: "Applies a patch to files: a unified diff, git's extensions included, or the form that begins with *** Begin Patch. All files are changed or none; where it does not fit, the answer names file, hunk and reason. A patch that was applied before says already_applied and changes nothing. It has at most 16 MiB and 1000 files; if_match is by the paths as they stand in it, after strip.",
			Method:      http.MethodPost, Path: filesPath + "/patch", Scope: core.ScopeFilesWrite,
			Hints:   Hints{Destructive: true},
			Success: done(),
			Errors:  append(slices.Clone(writeErrors), core.CodePatchRejected),
		}, (*core.Service).ApplyPatch),
	}
}

func changeRows() []Operation {
	return []Operation{
		Define(Operation{
			Name: "make_directory", Title: "Make a directory", Noun: files,
			Description: "Makes a directory. With parents, those that are missing on the way too, and one that is there already is no error. write_file makes the directories that it needs by itself.",
			Method:      http.MethodPost, Path: filesPath + "/mkdir", Scope: core.ScopeFilesWrite,
			Hints:   Hints{},
			Success: done(),
			Errors:  append(slices.Clone(pathErrors), core.CodeAlreadyExists),
		}, (*core.Service).MakeDirectory),
		Define(Operation{
			Name: "delete_file", Title: "Delete a file", Noun: files,
			Description: "Deletes a file, a link itself, or a directory; one that has entries only with recursive, in one step. The workspace itself cannot be deleted: reset_environment empties it.",
			Method:      http.MethodDelete, Path: filesPath, Scope: core.ScopeFilesWrite,
			Hints:   Hints{Destructive: true, Idempotent: true},
			Success: noContent(),
			Errors:  append(slices.Clone(readErrors), core.CodeNotEmpty, core.CodeETagMismatch),
		}, (*core.Service).DeleteFile),
	}
}

func manageRows() []Operation {
	return []Operation{
		Define(Operation{
			Name: "copy_file", Title: "Copy a file", Noun: files,
			Description: "Copies a file, a link itself, or a directory with all that is in it, to a new path; it is seen there when it is whole. What stands at the destination is replaced only with overwrite, and a directory never; if_match is about what stands there.",
			Method:      http.MethodPost, Path: filesPath + "/copy", Scope: core.ScopeFilesWrite,
			Hints:   Hints{Destructive: true},
			Success: done(),
			Errors:  writeErrors,
		}, (*core.Service).CopyFile),
		Define(Operation{
			Name: "move_file", Title: "Move a file", Noun: files,
			Description: "Moves or renames a file, a link itself, or a directory, in one step. What stands at the destination is replaced only with overwrite, and a directory never; if_match is about what stands there.",
			Method:      http.MethodPost, Path: filesPath + "/move", Scope: core.ScopeFilesWrite,
			Hints:   Hints{Destructive: true},
			Success: done(),
			Errors:  writeErrors,
		}, (*core.Service).MoveFile),
	}
}

func streamRows() []Operation {
	return []Operation{
		DefineDownload(Operation{
			Name: "download", Title: "Download a file", Noun: files,
			Description: "Gives a file as it is, of any size. HEAD says how long it is. Conditions and ranges are those of HTTP: If-None-Match, If-Match, Range (one range) and If-Range, with the ETag in quotes. To go on after a break, ask for the rest by Range with If-Range, so that a file that has changed is sent whole.",
			Method:      http.MethodGet, Path: filesPath + "/content", Scope: core.ScopeFilesRead,
			Hints:  Hints{ReadOnly: true, Idempotent: true},
			NoTool: "an answer of bytes of any size is no message; an assistant has read_file",
			Errors: append(slices.Clone(readErrors), core.CodeETagMismatch, core.CodeRangeUnsatisfiable),
		}, (*core.Service).DownloadFile),
		DefineUpload(Operation{
			Name: "upload", Title: "Upload a file", Noun: files,
			Description: "Makes a file hold the body of the request, whatever its Content-Type, of any size. The fields stand in the query; the conditions may stand in If-Match and If-None-Match. It is all or nothing: where the body ends early the file is what it was, and the upload begins anew. Parts of a file (Content-Range) are not taken.",
			Method:      http.MethodPut, Path: filesPath + "/content", Scope: core.ScopeFilesWrite,
			Hints:  Hints{Destructive: true, Idempotent: true},
			NoTool: "a body of bytes of any size is no message; an assistant has write_file",
			Errors: append(slices.Clone(writeErrors), core.CodeUnsupportedEncoding),
		}, func(f core.WrittenFile) bool { return f.Created }, (*core.Service).UploadFile),
		DefineArchive(Operation{
			Name: "export_files", Title: "Export a directory", Noun: files,
			Description: "Gives a directory as a tar, streamed: everything in it, hidden and ignored entries too. FIFOs, sockets and devices are left out and listed in the trailer Envapi-Skipped, a JSON list of paths, the first few. Where it cannot go on it breaks the connection off, so that nobody takes a part for the whole.",
			Method:      http.MethodGet, Path: filesPath + "/archive", Scope: core.ScopeFilesRead,
			Hints:  Hints{ReadOnly: true, Idempotent: true},
			NoTool: "an archive is no message; an assistant has list_files and read_file",
			Errors: readErrors,
		}, (*core.Service).ExportFiles),
		DefineUpload(Operation{
			Name: "import_files", Title: "Import a directory", Noun: files,
			Description: "Unpacks the body of the request, a tar, plain or packed with gzip or zstd, into a directory, which is made where it is missing: all of it, or nothing. What is there and not in the archive stays. An archive whose names lead out, or that holds devices, or more than there is room for, is refused whole.",
			Method:      http.MethodPut, Path: filesPath + "/archive", Scope: core.ScopeFilesWrite,
			Hints:  Hints{Destructive: true},
			NoTool: "an archive is no message; an assistant has write_file, and tar in a command",
			Errors: append(without(writeErrors, core.CodeETagMismatch), core.CodeUnsupportedEncoding),
		}, nil, (*core.Service).ImportFiles),
		DefineFeed(Operation{
			Name: "watch_files", Title: "Watch a directory", Noun: files,
			Description: "Tells of changes below a directory as they happen, as server-sent events named by their type (created, modified, attributes, deleted, moved, overflow, gone), each with its data in JSON (type, path, from, kind). It begins with a comment; what happens from then on is told, and nothing is told again to who connects anew: list once it has begun, and after overflow. Comments are sent in silence. It ends with gone, or with problem (a problem document), where the token has expired or the service stops.",
			Method:      http.MethodGet, Path: filesPath + "/watch", Scope: core.ScopeFilesRead,
			Hints:  Hints{ReadOnly: true, Idempotent: true},
			NoTool: "a stream is no message; an assistant has list_files",
			Errors: pathErrors,
		}, (*core.Service).WatchFiles),
	}
}
