package core

import (
	"context"
	"errors"
	"io"
	"time"
)

// What this package needs from the world. Each interface is implemented in
// internal/; nothing here says that files, processes or records are on this
// host.

// EnvironmentRecord is an environment as the store keeps it.
type EnvironmentRecord struct {
	ID             string
	Owner          Owner
	Name           string
	Labels         map[string]string
	State          EnvironmentState
	Limits         EnvironmentLimits
	HostUID        int            // the host uid and gid of its files and processes; 0 where the tier has none
	Idle           *time.Duration // how long it may be idle before it is archived, where its owner has said so
	CreatedAt      time.Time
	LastActivityAt time.Time
	// Archive is what its archive takes and holds: nil where it has none. It is there
	// in the states archived and restoring.
	Archive *Archive
}

// Archive is a folder that is packed.
type Archive struct {
	At      time.Time // when it was packed
	Bytes   int64     // of the archive
	Content DiskUse   // of the folder, as Workspaces.Usage counts it
}

// CommandRecord is a command as the store keeps it.
type CommandRecord struct {
	ID            string
	EnvironmentID string
	ShellID       string // "" where it runs in none
	Owner         Owner
	Command       string
	Cwd           string
	MergeStderr   bool
	StartedAt     time.Time
	CommandEnd
}

// CommandEnd is how a command stands: running, or how it ended.
type CommandEnd struct {
	Status   CommandStatus
	ExitCode *int
	Signal   string
	Reason   string
	Advice   string // what to do about it, for the caller; empty where nothing
	EndedAt  *time.Time
	Usage    *CommandUsage
	Late     LateOffsets // the ends of its streams when it ended
	// Of a command in a shell: whether that ended with it, and the shell's
	// directory after it, which takes the place of the one it started in; ""
	// where that is not known.
	ShellClosed bool
	Cwd         string
}

// ShellRecord is a shell as the store keeps it.
type ShellRecord struct {
	ID             string
	EnvironmentID  string
	Owner          Owner
	Name           string
	Kind           ShellKind
	Cols, Rows     int
	Cwd            string // after the last command that ended; it is written with that
	OpenedAt       time.Time
	LastActivityAt time.Time
	State          ShellState
	ShellEnd
}

// ShellEnd is how a shell was closed; the zero value is that of an open one.
type ShellEnd struct {
	Reason   string // one of the Close constants, or of the limits on disk
	ExitCode *int   // bash's own, where it exited
	Signal   string // the one that ended bash
	ClosedAt *time.Time
}

// Idempotency is a key under which something is made once. Keys belong to an
// owner and an operation; Fingerprint is the hash of the input.
type Idempotency struct {
	Operation   string
	Key         string
	Fingerprint string
}

// EnvironmentQuota bounds the environments that an owner may have. Those of the
// account that are archived count against Archived and not against the others. Who is
// archiving, or is restored from an archive, counts as both, so that either end has
// room.
type EnvironmentQuota struct{ PerAccount, PerProfile, Archived int }

// EnvironmentCount is how many environments there are, counted the same way.
type EnvironmentCount struct{ PerAccount, PerProfile, Archived int }

// UIDRange is where host uids are taken from: First up to, not including, End.
// The zero range gives none.
type UIDRange struct{ First, End int }

// Store keeps the records. Each method is one transaction. What is about
// environments is on disk, safe against power loss, when it returns; what is
// about commands is safe against kill -9, and against power loss a second
// later. A record of another owner is as absent as one that never was:
// ErrNoRecord.
type Store interface {
	// CreateEnvironment counts against the quota and inserts in one
	// transaction; over it, it fails with `quota_exceeded`. It fills in
	// HostUID from uids. With an idempotency key (Key not empty) that was used
	// for the same fingerprint it gives the environment made then and true;
	// for another fingerprint it fails with `idempotency_mismatch`; where the
	// environment made then was deleted since, with `not_found`.
	CreateEnvironment(ctx context.Context, e EnvironmentRecord, q EnvironmentQuota, uids UIDRange, key Idempotency) (EnvironmentRecord, bool, error)
	Environment(ctx context.Context, o Owner, id string) (EnvironmentRecord, error)
	// ListEnvironments gives the owner's, newest first, after the position
	// that cursor names, and the next cursor or "".
	ListEnvironments(ctx context.Context, o Owner, f ListEnvironmentsInput) ([]EnvironmentRecord, string, error)
	CountEnvironments(ctx context.Context, o Owner) (EnvironmentCount, error)
	// UpdateEnvironment reads, lets change alter, and writes in one
	// transaction.
	UpdateEnvironment(ctx context.Context, o Owner, id string, change func(*EnvironmentRecord) error) (EnvironmentRecord, error)
	// TurnEnvironment is UpdateEnvironment for a change that may bring the environment
	// among those that count against another quota, which is then held in the same
	// transaction: `quota_exceeded`.
	TurnEnvironment(ctx context.Context, o Owner, id string, q EnvironmentQuota, change func(*EnvironmentRecord) error) (EnvironmentRecord, error)
	// TouchEnvironments records activity, by id: a time that is later than the one
	// recorded takes its place. Those that are gone are left out. It is as safe as what
	// is about commands.
	TouchEnvironments(ctx context.Context, active map[string]time.Time) error
	// EndFuture has no active environment be last used later than now, where the clock
	// was set back since.
	EndFuture(ctx context.Context, now time.Time) error
	// IdleEnvironments gives active environments of all owners without activity since
	// before, that longest without it first, after the one that cursor names, and the
	// next cursor or "".
	IdleEnvironments(ctx context.Context, before time.Time, cursor string, limit int) ([]EnvironmentRecord, string, error)
	// DeleteEnvironment removes the record, its commands and their idempotency
	// keys, and its shells; those first and in steps, so that others do not wait. The
	// key of its own creation stays, for `not_found`, and its host uid stays
	// taken until ReleaseUID.
	DeleteEnvironment(ctx context.Context, o Owner, id string) error
	// DropEnvironment removes an environment that could not be made, its
	// idempotency key and its hold on a uid, as if it had never been. Dropping
	// what is not there is no error.
	DropEnvironment(ctx context.Context, id string) error
	// ReleaseUID frees the uid of a deleted environment whose files are gone.
	ReleaseUID(ctx context.Context, environmentID string) error
	// AllEnvironments gives the environments of all owners, for the
	// reconciliation at start.
	AllEnvironments(ctx context.Context) ([]EnvironmentRecord, error)
	// UnreleasedUIDs gives the ids of deleted environments whose uid is still
	// taken, because a crash came before ReleaseUID.
	UnreleasedUIDs(ctx context.Context) ([]string, error)

	// CreateCommand counts the running commands of the environment against
	// limit, or the environment's own where that is lower, and inserts in one
	// transaction; keys as in CreateEnvironment. It gives the environment too,
	// as it then stands, unless the command was made before. It fails with `not_found` where the environment is gone and with
	// `environment_busy` where it is not active. The start, and in
	// FinishCommand the end, is activity of the environment.
	CreateCommand(ctx context.Context, c CommandRecord, limit int, key Idempotency) (made CommandRecord, env EnvironmentRecord, existed bool, err error)
	// DropCommand removes a command that could not be started, and its key.
	// Dropping what is not there is no error.
	DropCommand(ctx context.Context, id string) error
	// BeginCommand moves the start of a running command, which waited in line.
	BeginCommand(ctx context.Context, id string, at time.Time) error
	// FinishCommand records the end. That of a shell's command is activity of the
	// shell too, and sets its directory.
	FinishCommand(ctx context.Context, id string, end CommandEnd) error
	Command(ctx context.Context, o Owner, id string) (CommandRecord, error)
	ListCommands(ctx context.Context, o Owner, f ListCommandsInput) ([]CommandRecord, string, error)
	// CountRunning gives the number of running commands of an environment.
	CountRunning(ctx context.Context, environmentID string) (int, error)
	// LoseRunning ends every running command as alone says, those of shells as
	// inShell does, and says how many there were; called at start.
	LoseRunning(ctx context.Context, alone, inShell CommandEnd) (int, error)

	// OldCommands gives commands of all owners that ended at a time or later, and before
	// another one, the oldest first; of one environment where that is named.
	OldCommands(ctx context.Context, environmentID string, from, before time.Time, limit int) ([]Remnant, error)
	// RemoveCommands removes records of commands that have ended, and their keys.
	RemoveCommands(ctx context.Context, ids []string) error

	// CreateShell counts the open shells of the environment against limit, or the
	// environment's own where that is lower, and inserts in one transaction; it
	// gives the environment and fails as CreateCommand does. The opening, and in
	// CloseShell and UpdateShell the time given, is activity of the environment, unless
	// a shell is closed for being idle or with its environment's archiving.
	// Keys are as in CreateCommand.
	CreateShell(ctx context.Context, sh ShellRecord, limit int, key Idempotency) (made ShellRecord, env EnvironmentRecord, existed bool, err error)
	// DropShell removes a shell that could not be opened. Dropping what is not
	// there is no error.
	DropShell(ctx context.Context, id string) error
	CloseShell(ctx context.Context, id string, end ShellEnd) error
	// UpdateShell records the size of the terminal and the last activity.
	UpdateShell(ctx context.Context, id string, cols, rows int, at time.Time) error
	Shell(ctx context.Context, o Owner, id string) (ShellRecord, error)
	ListShells(ctx context.Context, o Owner, f ListShellsInput) ([]ShellRecord, string, error)
	// CountShells gives the number of open shells of an environment.
	CountShells(ctx context.Context, environmentID string) (int, error)
	// CloseShells closes every open shell; called at start.
	CloseShells(ctx context.Context, at time.Time, reason string) (int, error)
	// OldShells and RemoveShells are for shells that are closed what OldCommands and
	// RemoveCommands are for commands. A shell of which commands are left is left too.
	OldShells(ctx context.Context, before time.Time, limit int) ([]Remnant, error)
	RemoveShells(ctx context.Context, ids []string) error

	// Made gives the id of what was made under a key, or "" where nothing was; for
	// another fingerprint it fails with `idempotency_mismatch`.
	Made(ctx context.Context, o Owner, key Idempotency) (id string, err error)
	// PruneKeys forgets idempotency keys that were first used before a time, at most
	// limit of them, and says how many there were.
	PruneKeys(ctx context.Context, before time.Time, limit int) (int, error)

	// KeepSettings keeps what was last known of an account's settings, as text, and
	// Settings gives it, "" where there is nothing.
	KeepSettings(ctx context.Context, account, text string) error
	Settings(ctx context.Context, account string) (string, error)

	// ClaimAccount makes account the one that a single-account deployment
	// serves, if none is yet, and gives the one that is.
	ClaimAccount(ctx context.Context, account string) (string, error)
	Ping(ctx context.Context) error
	Close() error
}

// Remnant is what is left of a command or shell that has ended.
type Remnant struct {
	ID, EnvironmentID string
	EndedAt           time.Time
}

// Workspaces keeps the environments' folders. Its methods are durable when
// they return and never follow a link.
type Workspaces interface {
	// Create makes the empty folder, owned by uid where it is not 0. An
	// existing one is kept.
	Create(ctx context.Context, id string, uid int) error
	// Path gives the folder's path on the host, for the sandbox to mount.
	Path(id string) string
	// Reset swaps the folder for an empty one in one step.
	Reset(ctx context.Context, id string, uid int) error
	// Remove takes the folder away in one step; its space, and anything else
	// that carries its id, is freed in the background, after which freed is
	// called. Removing what is not there frees at once.
	Remove(ctx context.Context, id string, freed func()) error
	// Usage counts bytes and files within the context's deadline, and with them
	// those of a folder of temporary files where that is not "".
	Usage(ctx context.Context, id, temporary string) (bytes, files int64, err error)
	// Measure counts as Usage does, but never waits for those who call Usage:
	// who only looks must not hold up who sees to the limits. Where a part
	// cannot be counted, it fails with ErrPartial or ErrHidden and gives the rest.
	Measure(ctx context.Context, id, temporary string) (DiskUse, error)
	// Space gives what the file system of the folders has.
	Space() (DiskSpace, error)
	// Files opens the folder for work on the files in it, as the user uid (0: the
	// service's own), which commands see at seen. What comes after the folder was
	// reset or removed happens in the old one.
	Files(id string, uid int, seen string) (FileTree, error)
	// IDs gives the ids of all folders.
	IDs() ([]string, error)

	// Pack makes the archive of a folder, which stays as it is; nothing may run in the
	// environment meanwhile. The archive is there as a whole when it returns; where ctx ends
	// or it fails, nothing is. An archive that is there already is replaced.
	Pack(ctx context.Context, id string, uid int) (Archive, error)
	// Unpack makes the folder from the archive, which stays, owned by uid: in one step,
	// in place of a folder that is there already. It fails with `disk_full` and where the
	// archive is not whole, and then leaves nothing.
	Unpack(ctx context.Context, id string, uid int) error
	// Vacate takes the folder away as Remove does, and leaves the archive. Remove takes
	// both.
	Vacate(ctx context.Context, id string) error
	// DropArchive removes the archive. Removing what is not there is no error.
	DropArchive(ctx context.Context, id string) error
	// Copy makes the folder of one environment from that of another, as it is while it
	// is read, owned by uid: in one step. Blocks are shared where the file system can. It
	// fails with `quota_exceeded` (see FitsInto) where more than most is found, which
	// programs can see to that write to the folder meanwhile, however little it holds.
	Copy(ctx context.Context, from, to string, uid int, most DiskUse) error
	// ArchiveIDs gives the ids of all archives.
	ArchiveIDs() ([]string, error)
	Close() error
}

// DiskUse is a number of bytes on disk and of files, directories and other
// entries.
type DiskUse struct{ Bytes, Files int64 }

// ErrPartial says that a part of a folder could not be counted, which is the
// doing of those who run in it.
var ErrPartial = errors.New("a part of the folder cannot be counted")

// ErrHidden says that processes of a folder's owner have sent descriptors that
// nobody has received yet. They may be those of deleted files, which then take
// space and cannot be counted.
var ErrHidden = errors.New("descriptors are on their way through a socket")

// DiskSpace is what a file system has: free for everybody, and in all. One that
// does not count its files in advance gives 0 in all.
type DiskSpace struct{ Free, Total DiskUse }

// OutputLogs keeps the output of commands, and of the terminals of shells: what is
// said of commands here holds for both.
type OutputLogs interface {
	// Create makes the empty log of a command.
	Create(environmentID, commandID string) (OutputLog, error)
	// Open gives the log of a command, live or from disk. A command without
	// one has an empty, ended log.
	Open(environmentID, commandID string) (OutputLog, error)
	// RemoveEnvironment removes every log of an environment.
	RemoveEnvironment(environmentID string) error
	// Remove removes the log of a command or shell that has ended. Who reads it finds
	// an empty one. Removing what is not there is no error.
	Remove(environmentID, commandID string) error
	// Trim drops all output of a command that has ended, and says how much of the disk
	// that frees. How long each stream was stays known: who reads finds it dropped.
	Trim(environmentID, commandID string) (freed int64, err error)
	// Bytes gives what the logs of each environment take on disk.
	Bytes() (map[string]int64, error)
	Close() error
}

// Lifetimes says how long what an owner has may be idle, where that was asked for.
type Lifetimes interface {
	// Of gives what is known now, and asks where that is old: it takes a few seconds
	// at most, and does not fail. Known gives what is known without asking.
	Of(ctx context.Context, o Owner) IdleTimes
	Known(ctx context.Context, o Owner) IdleTimes
}

// IdleTimes are how long a shell and an environment may be idle before they are closed
// and archived. Where one is nil nothing was asked for, and the deployment's default
// holds. Never is where nothing is known, and could not be asked: nothing is to end
// for being idle, save an environment that has a time of its own.
type IdleTimes struct {
	Shell, Environment *time.Duration
	Never              bool
}

// OutputLog is the output of one command: append-only, bounded, offsets never
// change. It has one writer per stream and any number of readers, none of whom
// can hold up the writers.
type OutputLog interface {
	// Writer gives the one writer of a stream (stdout, stderr or tty). What Write
	// has taken is safe against kill -9. Write never fails for want of space:
	// what cannot be kept is counted as dropped.
	Writer(s Stream) io.Writer
	// Read gives up to limit bytes of a stream from offset on. At the end it
	// gives none. In a dropped part it fails with *ExpiredError.
	Read(s Stream, offset, limit int64) ([]byte, error)
	// Size gives the length of a stream and how many of its bytes were
	// dropped.
	Size(s Stream) (total, dropped int64)
	// Extent says which bytes of a stream are kept at offset or after it.
	Extent(s Stream, offset int64) Extent
	// Changed gives a channel that is closed at the next write.
	Changed() <-chan struct{}
	// Release ends the use of a log that Create or Open gave.
	Release()
}

// Extent is a run of bytes of a stream that are kept, and how the stream stood at
// the same moment: Start up to, not including, End. Where nothing is kept any more
// both are the stream's end.
type Extent struct {
	Start, End     int64
	Total, Dropped int64
}

// ExpiredError says that the bytes at an offset were dropped.
type ExpiredError struct{ NextOffset int64 }

func (e *ExpiredError) Error() string { return "the output at this offset was dropped" }

// Redactor removes secrets from a stream on its way into the log, before any
// reader can see it.
type Redactor interface {
	io.Writer
	// Flush writes what was held back because it might begin a secret. It may
	// be called while Write runs: a command ends while its background children
	// still write.
	Flush() error
}
