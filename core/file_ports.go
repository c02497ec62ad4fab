package core

import (
	"context"
	"io"
	"io/fs"
	"time"
)

// FileInfo is what stands at a path. Its own fields are as the kernel says them.
type FileInfo struct {
	Path       string // relative to the workspace, as it was asked for or found
	Type       FileType
	Size       int64
	Mode       fs.FileMode // the permission bits
	ModifiedAt time.Time
	LinkTarget string // of a link
	// ETag is that of a regular file where it was asked for, or is known without
	// reading the file.
	ETag string
}

// FileType is a kind of directory entry.
type FileType string

// The types.
const (
	TypeFile      FileType = "file"
	TypeDirectory FileType = "directory"
	TypeSymlink   FileType = "symlink"
	TypeFIFO      FileType = "fifo"
	TypeSocket    FileType = "socket"
	TypeDevice    FileType = "device"
)

// FileTree is the folder of one environment. Paths are as callers give them:
// relative to it, or absolute below where commands see it. Each is resolved by the
// kernel below the folder, with the rights of the environment's user; a link at the
// end is followed unless it says otherwise. Everything is durable when it returns, and
// fails with the codes of files: `not_found`, `path_outside_workspace`,
// `permission_denied`, `not_a_regular_file`, `is_a_directory`, `not_a_directory`,
// `symlink_loop`, `already_exists`, `not_empty`, `etag_mismatch`, `disk_full`,
// `invalid_argument`.
//
// What changes a file and what a Condition says of it are one step for everybody who
// goes through the trees of one service. A program inside is not held up by that; see
// Commit.
type FileTree interface {
	FileReader
	FileWriter
	FileFinder
	FileArchiver
	// Watch tells of changes below a directory until ctx ends or Close; see FileWatch.
	Watch(ctx context.Context, path string, recursive bool) (FileWatch, error)
	Close() error
}

// FileReader reads one file.
type FileReader interface {
	// Stat says what stands at a path; a link at its end is not followed. With tag
	// the ETag of a regular file is there also where it must be read for that.
	Stat(ctx context.Context, path string, tag bool) (FileInfo, error)
	// Open opens a regular file; anything else is refused at once, unopened.
	Open(ctx context.Context, path string) (File, error)
}

// File is an open regular file. What is written to it meanwhile, inside, shows.
type File interface {
	io.ReaderAt
	io.Closer
	Info() FileInfo
	// ETag gives the tag of the content, from the cache where that is known to hold
	// or, with fresh or without, by reading all of it; until ctx ends.
	ETag(ctx context.Context, fresh bool) (string, error)
	// Section gives n bytes from offset on, in a form that the kernel can send by
	// itself. One at a time.
	Section(offset, n int64) (io.Reader, error)
}

// Condition is what must hold for a change to be made. The zero value is nothing. The
// tags are of the content that is there at that moment: it is read for it.
type Condition struct {
	// Match are the tags of which the file must have one; "*" is any. Nil is no
	// condition.
	Match []string
	// Absent is that nothing may stand there.
	Absent bool
}

// Staged is content on its way into the folder; nothing of it is seen there yet.
type Staged interface {
	Size() int64
	ETag() string
	// Discard frees what was not committed.
	Discard()
}

// Change is one file that is to be put, or taken away.
type Change struct {
	Path string
	// Put is what the file is to hold; nil takes what stands there away, which must
	// be no directory.
	Put Staged
	// If must hold; where it does not, nothing of the commit is done.
	If Condition
	// Mode is that of the file; nil keeps the one that is there, and is 0644 for a new
	// one.
	Mode *fs.FileMode
	// Like is the path of a file that this one is to have the mode and extended
	// attributes of, where nothing stands at Path: a rename. "" is none.
	Like string
	// Parents are made where they are missing.
	Parents bool
	// Literal takes Path for the name itself, also where that is a link: the link is
	// taken away or replaced, not what it leads to.
	Literal bool
}

// Committed is what became of a Change.
type Committed struct {
	Info    FileInfo // with its ETag; of what was put
	Created bool     // nothing stood there before
}

// FileWriter changes files.
//
// A program inside that writes at the same moment: what it wrote before the change is
// seen by the condition, or the change is undone and the condition judged again, as
// long as it replaced the file, or wrote it by name, before the change was made. What
// it writes through a descriptor or a mapping that it has open goes to the old file,
// which is then nobody's.
type FileWriter interface {
	// Stage takes in content until its end. More than limit bytes is `too_large`.
	Stage(ctx context.Context, content io.Reader, limit int64) (Staged, error)
	// Commit makes all changes or none, also where the service is killed meanwhile.
	// A file that is replaced keeps its owner, mode and user extended attributes; of
	// several hard links, the others keep the old content. What it was given is
	// discarded either way.
	Commit(ctx context.Context, changes []Change) ([]Committed, error)
	// MakeDirectory makes a directory. With parents, those that are missing too, and
	// one that is there already is no error: made says whether it was not.
	MakeDirectory(ctx context.Context, path string, parents bool) (info FileInfo, made bool, err error)
	// Remove takes away what stands at a path, in one step, however much it holds; a
	// link itself. A directory with entries fails with `not_empty` unless recursive.
	Remove(ctx context.Context, path string, recursive bool, cond Condition) error
	// Copy copies a file, a link itself, or a directory with all that is in it, and
	// shows it when it is whole. Skipped are the paths of FIFOs, sockets and devices
	// in it. It fails with `already_exists` unless overwrite, which replaces a file
	// but no directory. Bytes over limit are `too_large`, before anything is shown.
	Copy(ctx context.Context, source, destination string, o CopyOptions) (info FileInfo, skipped []string, err error)
	// Move renames in one step, likewise.
	Move(ctx context.Context, source, destination string, o CopyOptions) (FileInfo, error)
}

// CopyOptions says how a copy or a move is made.
type CopyOptions struct {
	Overwrite bool
	If        Condition // of the destination
	Parents   bool      // of the destination are made where they are missing
	Limit     int64     // bytes that may be copied
	Files     int64     // entries that may be copied
}

// FileFinder looks through directories. Nothing that is found is followed where it is
// a link.
type FileFinder interface {
	// List gives entries in the order of their paths, name by name.
	List(ctx context.Context, q ListQuery) (Listing, error)
	// Search looks into files.
	Search(ctx context.Context, q SearchQuery) (SearchResult, error)
}

// ListQuery asks for entries of a directory.
type ListQuery struct {
	Path    string
	Depth   int      // levels: 1 is the directory's own entries; 0 all
	Globs   []string // see package core/pattern; none is every path
	Hidden  bool     // names that begin with a dot too
	Ignored bool     // what gitignore rules exclude too
	After   string   // the last path of the page before; "" is the beginning
	Limit   int
}

// Listing is a page of entries.
type Listing struct {
	Entries []FileInfo
	Next    string // After of the next page; "" on the last
	// Skipped count what was not listed because of Ignored and Hidden: entries and not
	// what is below them. Of this page's part of the directory.
	SkippedIgnored, SkippedHidden int
	// Unreadable are directories that could not be opened, the first few.
	Unreadable []string
}

// SearchQuery asks for lines of files, or for files by name.
type SearchQuery struct {
	Path      string
	Pattern   string // RE2 (package regexp), or with Literal the text itself; "" is every file that the globs take
	Literal   bool
	Fold      bool // case does not count
	Multiline bool // the pattern may match over line ends
	Globs     []string
	Hidden    bool
	Ignored   bool
	Context   int // lines before and after
	Limit     int // matches
	MaxBytes  int // of text in all
	NamesOnly bool
}

// SearchResult is what was found, in the order of paths and lines, as far as the
// bounds let it.
type SearchResult struct {
	Matches []SearchMatch
	// Files and Total count what was found in all, the matches that are not here
	// included; they are at least that where Truncated by time.
	FilesMatched, TotalMatches int
	FilesSearched              int
	// What was not searched: see the fields of SearchFilesResult.
	SkippedIgnored, SkippedHidden, SkippedBinary, SkippedLarge int
	Unreadable                                                 []string
	Truncated                                                  string // why not all is here: "limit", "bytes", "time", or ""
}

// SearchMatch is a line, or with Multiline several, that the pattern is in.
type SearchMatch struct {
	Path          string
	Line          int    // from 1
	Column        int    // of the first match in it, in bytes from 1
	Text          string // the line without its end, or an excerpt around the match
	Cut           bool   // Text is an excerpt
	Before, After []string
	Count         int // matches in the line
}

// FileArchiver packs and unpacks directories as tar.
type FileArchiver interface {
	// Export writes a tar of what is below a directory, in a stable order. FIFOs,
	// sockets and devices are skipped, and listed in a last entry's comment and by
	// the result. It fails before the first byte where the path is no directory.
	Export(ctx context.Context, path string, to io.Writer, c Compression) (skipped []string, err error)
	// Import unpacks a tar into a directory that is made where it is missing, all or
	// nothing: names that lead out, devices, links that files are then unpacked
	// through, and more than the bounds are refused before anything is shown. What is
	// there already fails with `already_exists` unless overwrite, which replaces
	// files.
	Import(ctx context.Context, path string, from io.Reader, o ImportOptions) (ImportResult, error)
}

// Compression is how a tar is packed.
type Compression string

// The compressions.
const (
	CompressNone Compression = "none"
	CompressGzip Compression = "gzip"
	CompressZstd Compression = "zstd"
)

// ImportOptions bound an import.
type ImportOptions struct {
	Overwrite bool
	MaxBytes  int64 // of all files, unpacked
	MaxFiles  int64
}

// ImportResult is what was unpacked.
type ImportResult struct {
	Files, Directories, Links int
	Bytes                     int64
	Skipped                   []string // FIFOs and sockets
}

// FileWatch is a subscription to changes.
type FileWatch interface {
	// Next waits for changes and gives them in order, until ctx ends. After an
	// overflow it gives one event that says so, and goes on.
	Next(ctx context.Context) ([]FileEvent, error)
	Close() error
}

// FileEvent is one change.
type FileEvent struct {
	Type FileEventType `json:"type" doc:"What happened. overflow: events were lost, look again; gone: the watched directory itself is no longer there, and the stream ends." enum:"created,modified,attributes,deleted,moved,overflow,gone"`
	Path string        `json:"path" doc:"Relative to the workspace; of moved, where it is now."`
	From string        `json:"from,omitempty" doc:"Of moved: where it was."`
	Kind FileType      `json:"kind,omitempty" doc:"What it is, where that is known." enum:"file,directory,symlink,fifo,socket,device"`
}

// FileEventType is a kind of change.
type FileEventType string

// The kinds of change.
const (
	FileCreated    FileEventType = "created"
	FileModified   FileEventType = "modified" // its content, told when its writer closes it or stops for a moment
	FileAttributes FileEventType = "attributes"
	FileDeleted    FileEventType = "deleted"
	FileMoved      FileEventType = "moved"
	FileOverflow   FileEventType = "overflow"
	FileGone       FileEventType = "gone"
)
