package core

// FileRef names something in an environment's workspace.
type FileRef struct {
	EnvironmentID string `json:"environment_id" doc:"The environment whose workspace it is in." maxlen:"64"`
	Path          string `json:"path" doc:"Relative to the workspace, or absolute below where commands see it (workspace_path, or /workspace)." minlen:"1" maxlen:"4096"`
	Restoring
}

// DirectoryRef is FileRef for what may be the workspace itself.
type DirectoryRef struct {
	EnvironmentID string `json:"environment_id" doc:"The environment whose workspace it is in." maxlen:"64"`
	Path          string `json:"path,omitempty" doc:"A directory, relative to the workspace or absolute below it; left out, the workspace itself." maxlen:"4096"`
	Restoring
}

// Precondition is a condition on the content that is there.
type Precondition struct {
	IfMatch string `json:"if_match,omitempty" doc:"The ETag that the file must have at the moment of the change; several are separated by commas, * is any. Where it has another, or there is no file, nothing is changed: etag_mismatch." maxlen:"1024"`
}

// FileEntry is something in a directory.
type FileEntry struct {
	Path       string   `json:"path" doc:"Relative to the workspace. Bytes that are not UTF-8 stand as U+FFFD here, and path_base64 is there."`
	PathBase64 string   `json:"path_base64,omitempty" doc:"The exact bytes of a path that is not valid UTF-8, in base64. The files API cannot name it; a command can."`
	Type       FileType `json:"type" doc:"What it is; a link is not followed." enum:"file,directory,symlink,fifo,socket,device"`
	SizeBytes  int64    `json:"size_bytes" doc:"The length of a file; of anything else as the file system has it."`
	Mode       string   `json:"mode" doc:"Its permissions in octal, for example 0644."`
	ModifiedAt Time     `json:"modified_at" doc:"When its content last changed."`
	LinkTarget string   `json:"link_target,omitempty" doc:"Of a link: what stands in it."`
	ETag       string   `json:"etag,omitempty" doc:"Of a file: the tag of its content. In lists, and of what was copied or moved, only where it is known without reading the file."`
}

// ListFilesInput asks for a page of entries.
type ListFilesInput struct {
	DirectoryRef
	Recursive bool   `json:"recursive,omitempty" doc:"All levels, not only the directory's own entries."`
	Depth     *int   `json:"depth,omitempty" doc:"How many levels; 1 is the directory's own entries. It implies recursive." min:"1" max:"1000"`
	Glob      string `json:"glob,omitempty" doc:"Only paths that match, below the directory: * and ? within a name, ** over several, [a-z], {a,b}. One without a slash is matched against names at every level. It implies recursive." maxlen:"1024"`
	Hidden    bool   `json:"hidden,omitempty" doc:"Names that begin with a dot, too."`
	Ignored   bool   `json:"ignored,omitempty" doc:"What the rules of .gitignore files exclude, too. They are read in every directory from the workspace down, whether or not it is a repository, and .git itself counts as excluded. The same rules hold in search_files."`
	Limit     int    `json:"limit,omitempty" doc:"How many entries at most." min:"1" max:"1000" default:"200"`
	Cursor    string `json:"cursor,omitempty" doc:"The next_cursor of the page before; leave it out for the first page." maxlen:"8192"`
}

// FileList is a page of entries, in the order of their paths.
type FileList struct {
	Items          []FileEntry `json:"items" doc:"The entries of this page, in the order of their paths, name by name. A page goes on after the last path of the one before, whatever was added or removed meanwhile."`
	NextCursor     string      `json:"next_cursor,omitempty" doc:"Where the next page starts; absent on the last."`
	SkippedHidden  int         `json:"skipped_hidden,omitempty" doc:"How many entries were passed over because their names begin with a dot (hidden shows them); what is below them is not counted."`
	SkippedIgnored int         `json:"skipped_ignored,omitempty" doc:"How many entries were passed over because of .gitignore rules (ignored shows them); what is below them is not counted."`
	Unreadable     []string    `json:"unreadable,omitempty" doc:"Directories that could not be looked into, the first few."`
}

// StatFileInput asks what stands at a path.
type StatFileInput struct {
	FileRef
	ETag *bool `json:"etag,omitempty" doc:"Whether to give the ETag. Left out: of files up to the size for which ETags are made by themselves (256 MiB unless the deployment says otherwise)."`
}

// ReadFileInput asks for a part of a file as text.
type ReadFileInput struct {
	FileRef
	StartLine  *int64 `json:"start_line,omitempty" doc:"The first line, from 1." min:"1"`
	EndLine    *int64 `json:"end_line,omitempty" doc:"The last line, included." min:"1"`
	Offset     *int64 `json:"offset,omitempty" doc:"The first byte, from 0; not together with lines. Beyond the end it is the end, and text is empty." min:"0"`
	LimitBytes *int64 `json:"limit_bytes,omitempty" doc:"How many bytes of the file at most." min:"1" max:"1048576" default:"65536"`
	ETag       *bool  `json:"etag,omitempty" doc:"Whether to give the ETag of a file above the size for which it is made by itself."`
}

// FileText is a part of a file.
type FileText struct {
	Path       string `json:"path" doc:"As it was asked for."`
	Text       string `json:"text" doc:"The part, byte for byte. It never ends within a character."`
	Encoding   string `json:"encoding" doc:"How text stands here: utf-8 as it is; base64 where the part is not UTF-8." enum:"utf-8,base64"`
	Charset    string `json:"charset" doc:"What the file seems to be, by its first 64 KiB: utf-8, utf-16le or utf-16be (by their byte order marks), or binary, which is all else." enum:"utf-8,utf-16le,utf-16be,binary"`
	BOM        bool   `json:"bom,omitempty" doc:"Whether the file begins with a byte order mark; it stands in the text of the part that begins at offset 0."`
	LineEnding string `json:"line_ending" doc:"How the lines of this part end: lf, crlf, mixed, or none." enum:"lf,crlf,mixed,none"`
	StartLine  *int64 `json:"start_line,omitempty" doc:"The line that the part begins in. Where it was asked for by offset it is there only if it is known."`
	EndLine    *int64 `json:"end_line,omitempty" doc:"The line that the part ends in."`
	TotalLines *int64 `json:"total_lines" doc:"Lines in the file, a last one without an end included; null where the file is too large to count."`
	Offset     int64  `json:"offset" doc:"Where the part begins, in bytes."`
	NextOffset *int64 `json:"next_offset,omitempty" doc:"Where to read on; absent at the end of the file, or of the lines that were asked for."`
	NextLine   *int64 `json:"next_line,omitempty" doc:"The line to read on at; absent where the part ends within a line: go on at next_offset."`
	SizeBytes  int64  `json:"size_bytes" doc:"How long the file is."`
	ETag       string `json:"etag,omitempty" doc:"The tag of the content, for if_match. Left out for large files unless etag is true."`
	Next       string `json:"next,omitempty" doc:"What to call next, where this is not all."`
}

// WriteFileInput asks for a file to hold something.
type WriteFileInput struct {
	FileRef
	Content     string `json:"content" doc:"What the file is to hold, exactly; nothing is changed in it."`
	Encoding    string `json:"encoding,omitempty" doc:"How content stands here." enum:"utf-8,base64" default:"utf-8"`
	Mode        string `json:"mode,omitempty" doc:"The file's permissions in octal, for example 0755. Left out: an existing file keeps its own, a new one gets 0644." maxlen:"5"`
	Parents     *bool  `json:"parents,omitempty" doc:"Make directories on the way that are missing." default:"true"`
	Append      bool   `json:"append,omitempty" doc:"Put content after what the file holds; a missing file is made."`
	IfNoneMatch string `json:"if_none_match,omitempty" doc:"* writes only where there is no file." enum:"*"`
	Precondition
}

// UploadFileInput is WriteFileInput for a body of any size.
type UploadFileInput struct {
	FileRef
	Mode        string `json:"mode,omitempty" doc:"The file's permissions in octal, for example 0755. Left out: an existing file keeps its own, a new one gets 0644." maxlen:"5"`
	Parents     *bool  `json:"parents,omitempty" doc:"Make directories on the way that are missing." default:"true"`
	IfNoneMatch string `json:"if_none_match,omitempty" doc:"* writes only where there is no file." enum:"*"`
	Precondition
}

// WrittenFile is a file that was written.
type WrittenFile struct {
	Path      string `json:"path" doc:"As it was asked for."`
	Created   bool   `json:"created" doc:"Whether there was none before."`
	SizeBytes int64  `json:"size_bytes" doc:"How long it is now."`
	Mode      string `json:"mode" doc:"Its permissions in octal."`
	ETag      string `json:"etag" doc:"The tag of its content, for if_match."`
	Diff      string `json:"diff,omitempty" doc:"Of edit_file: what changed, as a unified diff, cut where it is long."`
}

// DownloadFileInput asks for a file as it is.
type DownloadFileInput struct {
	FileRef
	ETag        *bool  `json:"etag,omitempty" doc:"Whether to give the ETag of a file above the size for which it is made by itself."`
	IfNoneMatch string `json:"if_none_match,omitempty" doc:"An ETag, or several separated by commas; where the file has one of them the answer is 304." maxlen:"1024"`
}

// EditFileInput asks for exact replacements in a file.
type EditFileInput struct {
	FileRef
	Edits  []Edit `json:"edits" doc:"The replacements, each made in what the ones before it left. All are made or none."`
	DryRun bool   `json:"dry_run,omitempty" doc:"Change nothing; answer what would be, with its diff."`
	Precondition
}

// Edit is one exact replacement.
type Edit struct {
	Old        string `json:"old" doc:"The text to replace, byte for byte as in the file, white space included. It must be there once, unless replace_all. Over a file with CRLF line ends, a text with LF ones is matched too, and what is put in its place gets CRLF." minlen:"1"`
	New        string `json:"new" doc:"What stands there afterwards, literally."`
	ReplaceAll bool   `json:"replace_all,omitempty" doc:"Replace it everywhere."`
}

// EditedFile is what became of an edit.
type EditedFile struct {
	Path         string `json:"path" doc:"As it was asked for."`
	Replacements int    `json:"replacements" doc:"How many places were replaced."`
	DryRun       bool   `json:"dry_run,omitempty" doc:"Whether nothing was changed."`
	SizeBytes    int64  `json:"size_bytes" doc:"How long it is now."`
	ETag         string `json:"etag" doc:"The tag of its content, for if_match; with dry_run, of what it would be."`
	Diff         string `json:"diff" doc:"What changed, as a unified diff; cut where it is longer than 64 KiB."`
}

// ApplyPatchInput asks for a patch to be applied.
type ApplyPatchInput struct {
	EnvironmentID string            `json:"environment_id" doc:"The environment whose workspace it is in." maxlen:"64"`
	Patch         string            `json:"patch" doc:"A unified diff, with git's extensions (new, deleted, renamed and copied files, modes), or the form that begins with *** Begin Patch." minlen:"1"`
	Cwd           string            `json:"cwd,omitempty" doc:"The directory that its paths are relative to; left out, the workspace." maxlen:"4096"`
	Strip         *int              `json:"strip,omitempty" doc:"How many leading parts to take off each path of a unified diff, as patch -p does. Left out: 1 where all paths begin with a/ and b/ as git writes them, else 0." min:"0" max:"100"`
	DryRun        bool              `json:"dry_run,omitempty" doc:"Change nothing; answer what would be."`
	IfMatch       map[string]string `json:"if_match,omitempty" doc:"By path, the ETag that the file must have before."`
	Restoring
}

// AppliedPatch is what became of a patch.
type AppliedPatch struct {
	Files          []PatchedFile `json:"files" doc:"Each file that it is about, in its order."`
	AlreadyApplied bool          `json:"already_applied,omitempty" doc:"Every file already is what the patch makes of it; nothing was changed."`
	DryRun         bool          `json:"dry_run,omitempty" doc:"Whether nothing was changed."`
}

// PatchedFile is one file of a patch.
type PatchedFile struct {
	Path    string `json:"path" doc:"Relative to the workspace."`
	From    string `json:"from,omitempty" doc:"Where it was before, of a renamed or copied one."`
	Action  string `json:"action" doc:"What was done." enum:"created,modified,deleted,renamed,copied,unchanged"`
	Added   int    `json:"added" doc:"Lines added."`
	Removed int    `json:"removed" doc:"Lines removed."`
	ETag    string `json:"etag,omitempty" doc:"The tag of its content now."`
	Note    string `json:"note,omitempty" doc:"What was not as the patch says, for example that hunks stood at other lines."`
}

// SearchFilesInput asks for lines, or for files by name.
type SearchFilesInput struct {
	DirectoryRef
	Pattern    string `json:"pattern,omitempty" doc:"A regular expression in RE2 syntax. ^ and $ are the beginning and end of a line; a CR before the line's end is not part of it." maxlen:"8192"`
	Literal    string `json:"literal,omitempty" doc:"A text to find as it is; instead of pattern." maxlen:"8192"`
	Case       string `json:"case,omitempty" doc:"Whether case counts; smart ignores it where the pattern has no capital." enum:"sensitive,insensitive,smart" default:"sensitive"`
	Glob       string `json:"glob,omitempty" doc:"Only files whose paths match, as in list_files. With neither pattern nor literal: find files by name." maxlen:"1024"`
	Hidden     bool   `json:"hidden,omitempty" doc:"Names that begin with a dot, too."`
	Ignored    bool   `json:"ignored,omitempty" doc:"What the rules of .gitignore files exclude, too; see list_files."`
	Multiline  bool   `json:"multiline,omitempty" doc:"Let the pattern match over line ends. Without it, one that needs a line end is refused."`
	Context    *int   `json:"context,omitempty" doc:"Lines to show before and after each match." min:"0" max:"20" default:"0"`
	FilesOnly  bool   `json:"files_only,omitempty" doc:"Only which files match, with a count each."`
	Limit      int    `json:"limit,omitempty" doc:"How many matching lines (or files) at most." min:"1" max:"2000" default:"100"`
	LimitBytes int    `json:"limit_bytes,omitempty" doc:"How much text at most, in bytes." min:"1024" max:"1048576" default:"65536"`
}

// SearchedFiles is what was found.
type SearchedFiles struct {
	Matches        []FileMatch `json:"matches" doc:"Lines that match, or files, in the order of paths and lines."`
	TotalMatches   int         `json:"total_matches" doc:"How many there are in all; at least that many where truncated is time."`
	FilesMatched   int         `json:"files_matched" doc:"In how many files."`
	FilesSearched  int         `json:"files_searched" doc:"How many files were looked into."`
	Truncated      string      `json:"truncated,omitempty" doc:"Why matches are missing here: limit, bytes (limit_bytes), or time. Narrow the search by path or glob, or raise the bound." enum:"limit,bytes,time"`
	SkippedHidden  int         `json:"skipped_hidden,omitempty" doc:"Entries passed over because their names begin with a dot (hidden searches them)."`
	SkippedIgnored int         `json:"skipped_ignored,omitempty" doc:"Entries passed over because of .gitignore rules (ignored searches them)."`
	SkippedBinary  int         `json:"skipped_binary,omitempty" doc:"Files with a NUL byte in their first 8 KiB."`
	SkippedLarge   int         `json:"skipped_large,omitempty" doc:"Files that are longer than a search reads of one: 256 MiB, or with multiline 8 MiB."`
	Unreadable     []string    `json:"unreadable,omitempty" doc:"What could not be opened, the first few."`
	Next           string      `json:"next,omitempty" doc:"What to do next, where something was left out."`
}

// FileMatch is one line that matches, or one file.
type FileMatch struct {
	Path   string   `json:"path" doc:"Relative to the workspace."`
	Line   int      `json:"line,omitempty" doc:"From 1; absent where files were asked for."`
	Column int      `json:"column,omitempty" doc:"Where the first match in the line begins, in bytes from 1."`
	Text   string   `json:"text,omitempty" doc:"The line; of a long one, an excerpt around the match. Bytes that are not UTF-8 stand as U+FFFD."`
	Cut    bool     `json:"cut,omitempty" doc:"Whether text is an excerpt."`
	Count  int      `json:"count,omitempty" doc:"How many matches there are in the line, of which at most 100 are counted, or how many matching lines in the file."`
	Before []string `json:"before,omitempty" doc:"The lines before."`
	After  []string `json:"after,omitempty" doc:"The lines after."`
}

// MakeDirectoryInput asks for a directory.
type MakeDirectoryInput struct {
	FileRef
	Parents bool `json:"parents,omitempty" doc:"Make those that are missing on the way too; one that is there already is then no error."`
}

// DeleteFileInput asks for something to be taken away.
type DeleteFileInput struct {
	FileRef
	Recursive bool `json:"recursive,omitempty" doc:"A directory with all that is in it. A link is removed itself, never followed."`
	Precondition
}

// CopyFileInput asks for a copy, or a move.
type CopyFileInput struct {
	EnvironmentID string `json:"environment_id" doc:"The environment whose workspace it is in." maxlen:"64"`
	Source        string `json:"source" doc:"What to take; a link is taken itself." minlen:"1" maxlen:"4096"`
	Destination   string `json:"destination" doc:"Where it is to be: the new path itself, not a directory to put it into." minlen:"1" maxlen:"4096"`
	Overwrite     bool   `json:"overwrite,omitempty" doc:"Replace a file that stands at the destination; a directory is never replaced."`
	Parents       bool   `json:"parents,omitempty" doc:"Make directories on the way to the destination that are missing."`
	Precondition
	Restoring
}

// CopiedFile is what stands at the destination.
type CopiedFile struct {
	FileEntry
	Skipped []string `json:"skipped,omitempty" doc:"FIFOs, sockets and devices, which are not copied; the first few."`
}

// ExportFilesInput asks for a directory as an archive.
type ExportFilesInput struct {
	DirectoryRef
	Compression string `json:"compression,omitempty" doc:"How the tar is packed." enum:"none,gzip,zstd" default:"gzip"`
}

// ImportFilesInput puts an archive into a directory.
type ImportFilesInput struct {
	DirectoryRef
	Overwrite bool `json:"overwrite,omitempty" doc:"Replace files that are there already; without it the first such fails with already_exists."`
}

// ImportedFiles is what was unpacked.
type ImportedFiles struct {
	Path        string   `json:"path" doc:"The directory."`
	Files       int      `json:"files" doc:"Files unpacked."`
	Directories int      `json:"directories" doc:"Directories made, or there already."`
	Links       int      `json:"links" doc:"Links made."`
	SizeBytes   int64    `json:"size_bytes" doc:"The bytes of all files."`
	Skipped     []string `json:"skipped,omitempty" doc:"FIFOs and sockets, which are not unpacked; the first few."`
}

// WatchFilesInput asks for changes as they happen.
type WatchFilesInput struct {
	DirectoryRef
	Recursive *bool `json:"recursive,omitempty" doc:"All levels below, too." default:"true"`
}
