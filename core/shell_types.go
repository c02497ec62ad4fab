package core

// ShellKind says whom a shell is for.
type ShellKind string

// The kinds.
const (
	ShellCommand  ShellKind = "command"
	ShellTerminal ShellKind = "terminal"
)

// ShellState says whether a shell can be used.
type ShellState string

// The states. A closed shell stays closed.
const (
	ShellOpen   ShellState = "open"
	ShellClosed ShellState = "closed"
)

// The reasons of a shell that is closed.
const (
	CloseByCaller            = "closed"        // close_shell
	CloseExited              = "exited"        // bash ended by itself: see exit_code and signal
	CloseCorrupt             = "corrupt"       // it could not say any more how a command ended
	CloseTimedOut            = "timed_out"     // a command's timeout had to end it too
	CloseKilled              = "killed"        // likewise a signal of the caller's to a command
	CloseOutOfMemory         = "out_of_memory" // the kernel killed it for memory
	CloseEnvironmentReset    = "environment_reset"
	CloseEnvironmentDeleted  = "environment_deleted"
	CloseEnvironmentArchived = "environment_archived"
	CloseServiceRestarted    = "service_restarted" // the service stopped, in good order or not
	CloseSandboxFailed       = "sandbox_failed"
	CloseIdle                = "idle" // nobody used it for as long as it may be idle
)

// Shell is a bash that lives on between calls.
type Shell struct {
	ID               string     `json:"id" doc:"sh_ and 26 characters."`
	EnvironmentID    string     `json:"environment_id" doc:"Where it runs."`
	Name             string     `json:"name" doc:"The name given when it was opened, or empty."`
	Kind             ShellKind  `json:"kind" doc:"command takes framed commands by run_in_shell; terminal is an interactive shell for people and full-screen programs, used by write_shell and read_shell." enum:"command,terminal"`
	State            ShellState `json:"state" doc:"A shell does not outlive the service, nor its environment." enum:"open,closed"`
	CloseReason      string     `json:"close_reason,omitempty" doc:"Why it is closed. exited: bash ended by itself, see exit_code and signal. corrupt: it lived, but could not say any more how a command ended. timed_out, killed: a command in it had to be ended and bash did not come back. service_restarted: the service stopped since. sandbox_failed: what contains it is gone. idle: nobody used it for as long as a shell may be idle; what it had in the background lives on." enum:"closed,idle,exited,corrupt,timed_out,killed,out_of_memory,environment_reset,environment_archived,environment_deleted,disk_bytes,files,disk_full,service_restarted,sandbox_failed"`
	ExitCode         *int       `json:"exit_code,omitempty" doc:"Bash's own, where it exited."`
	Signal           string     `json:"signal,omitempty" doc:"The signal that ended bash, for example KILL."`
	Cols             int        `json:"cols" doc:"The width of its terminal, in characters."`
	Rows             int        `json:"rows" doc:"The height of its terminal."`
	Cwd              string     `json:"cwd,omitempty" doc:"Its directory after the last command, as commands see it. Of kind command only."`
	RunningCommandID string     `json:"running_command_id,omitempty" doc:"The command that runs in it now."`
	Queued           int        `json:"queued,omitempty" doc:"How many commands wait in line for it."`
	WaitingForInput  *bool      `json:"waiting_for_input" doc:"Whether what runs in the foreground of its terminal is blocked reading it: it waits for write_shell. Null where this host cannot tell, and in lists for one that is open."`
	TotalBytes       int64      `json:"total_bytes" doc:"How long its terminal stream is, for read_shell."`
	OpenedAt         Time       `json:"opened_at" doc:"When it was opened."`
	LastActivityAt   Time       `json:"last_activity_at" doc:"When it was last used: run in, written to, resized, read by read_shell, or attached, or when a command in it last ended, or when it was closed."`
	ClosedAt         *Time      `json:"closed_at,omitempty" doc:"When it was closed."`
	Next             string     `json:"next,omitempty" doc:"What to call next, where that is not plain."`
}

// TerminalSize is that of a terminal, in characters.
type TerminalSize struct {
	Cols int `json:"cols" doc:"Width." min:"1" max:"1000"`
	Rows int `json:"rows" doc:"Height." min:"1" max:"1000"`
}

// OpenShellInput asks for a new shell.
type OpenShellInput struct {
	EnvironmentID  string            `json:"environment_id,omitempty" doc:"Where to open it. May be left out in local stdio use only: the default environment, made on first use." maxlen:"64"`
	Name           string            `json:"name,omitempty" doc:"A name for people; it need not be unique." maxlen:"128"`
	Kind           string            `json:"kind,omitempty" doc:"command is for run_in_shell; terminal is an interactive shell for people and full-screen programs." enum:"command,terminal" default:"command"`
	Cols           *int              `json:"cols,omitempty" doc:"The width of its terminal." min:"1" max:"1000" default:"80"`
	Rows           *int              `json:"rows,omitempty" doc:"The height of its terminal." min:"1" max:"1000" default:"24"`
	Cwd            string            `json:"cwd,omitempty" doc:"The directory to start in, absolute or below the workspace; default the workspace." maxlen:"4096"`
	Env            map[string]string `json:"env,omitempty" doc:"Variables to set beside the documented ones."`
	IdempotencyKey string            `json:"idempotency_key,omitempty" doc:"The same key and input again gives the same shell, also after a restart, which closes it. Keys are kept for the deployment's ENVAPI_IDEMPOTENCY_RETENTION_MS, 24 hours by default." minlen:"1" maxlen:"128"`
	Restoring
}

// ShellRef names the shell that an operation is about.
type ShellRef struct {
	ShellID string `json:"shell_id" doc:"The shell's id." maxlen:"64"`
}

// ListShellsInput asks for shells, newest first.
type ListShellsInput struct {
	EnvironmentID string `json:"environment_id,omitempty" doc:"Only those of this environment." maxlen:"64"`
	State         string `json:"state,omitempty" doc:"Only those in this state." enum:"open,closed"`
	Paging
}

// RunInShellInput asks to run one command in a shell of kind command.
type RunInShellInput struct {
	ShellRef
	Command        string `json:"command" doc:"What bash is to run, as a file that it sources: of any number of lines, at most 1 MiB. An empty one does nothing and exits 0. A cd, an export, a function or an option lasts; exec with a redirection does not."`
	TTY            bool   `json:"tty,omitempty" doc:"Give the command the terminal for its output too, which full-screen programs need: all of it is then in stdout, and read_shell with screen shows it." default:"false"`
	MergeStderr    bool   `json:"merge_stderr,omitempty" doc:"Write standard error into standard output, in exact order." default:"false"`
	Queue          bool   `json:"queue,omitempty" doc:"Where a command runs in the shell, wait in line for it instead of failing with shell_busy." default:"false"`
	WaitMS         *int64 `json:"wait_ms,omitempty" doc:"How long to wait for the end before answering; the command runs on after that. The wait ends early where the command waits for input. More than 45000 is cut to it." min:"0" default:"10000"`
	TimeoutMS      *int64 `json:"timeout_ms,omitempty" doc:"When to end the command and its processes, counted from its start. Bash is ended too where it does not come back." min:"1" max:"86400000" default:"600000"`
	OutputBytes    *int64 `json:"output_bytes,omitempty" doc:"How much of each stream to answer inline; the rest is kept for read_output." min:"0" max:"1048576" default:"16384"`
	IdempotencyKey string `json:"idempotency_key,omitempty" doc:"The same key and input again gives the same command, also after it ended or the shell was closed; wait_ms and output_bytes may differ. Keys are kept for the deployment's ENVAPI_IDEMPOTENCY_RETENTION_MS, 24 hours by default." minlen:"1" maxlen:"128"`
}

// WriteShellInput types into a shell's terminal.
type WriteShellInput struct {
	ShellRef
	Data     string   `json:"data,omitempty" doc:"What to type. A program that reads lines needs a newline at the end. At most 1 MiB."`
	Encoding string   `json:"encoding,omitempty" doc:"What data is." enum:"utf-8,base64" default:"utf-8"`
	Keys     []string `json:"keys,omitempty" doc:"Keys to press after data, by name: enter, tab, escape, backspace, delete, insert, space, up, down, left, right, home, end, page-up, page-down, f1 to f12, ctrl-a to ctrl-z, ctrl-space, ctrl-\\, ctrl-], ctrl-^, ctrl-_; with alt- or shift- before them where a terminal knows that."`
	EOF      bool     `json:"eof,omitempty" doc:"Say after all that that no more comes, as ctrl-d at the beginning of a line does." default:"false"`
	WaitMS   *int64   `json:"wait_ms,omitempty" doc:"How long to wait for room where the program does not read. More than 45000 is cut to it." min:"0" default:"5000"`
}

// WriteInputInput writes to a command's standard input.
type WriteInputInput struct {
	CommandID   string `json:"command_id" doc:"The command's id." maxlen:"64"`
	Data        string `json:"data,omitempty" doc:"What to write. A program that reads lines needs a newline at the end. At most 1 MiB."`
	Encoding    string `json:"encoding,omitempty" doc:"What data is." enum:"utf-8,base64" default:"utf-8"`
	EOF         bool   `json:"eof,omitempty" doc:"Say after data that no more comes." default:"false"`
	WaitMS      *int64 `json:"wait_ms,omitempty" doc:"How long to wait for room where the program does not read. More than 45000 is cut to it." min:"0" default:"5000"`
	OutputBytes *int64 `json:"output_bytes,omitempty" doc:"How much of each stream to answer inline." min:"0" max:"1048576" default:"16384"`
}

// ShellInputTaken is a shell after it was written to.
type ShellInputTaken struct {
	Shell
	WrittenBytes int64 `json:"written_bytes" doc:"How many bytes the terminal took: fewer than given where nobody read them in time. Write the rest again later."`
}

// CommandThen is a Command under a name that does not hide its field command where
// it is embedded.
type CommandThen = Command

// InputTaken is a command after it was written to.
type InputTaken struct {
	CommandThen
	WrittenBytes int64 `json:"written_bytes" doc:"How many bytes were taken: fewer than given where nobody read them in time. Write the rest again later."`
}

// ReadShellInput asks for a part of a shell's terminal stream, or its screen.
type ReadShellInput struct {
	ShellRef
	Offset     *int64 `json:"offset,omitempty" doc:"The byte to start at, or the next_offset of the answer before. Beyond the end there is nothing yet, which is no error." min:"0" default:"0"`
	LimitBytes *int64 `json:"limit_bytes,omitempty" doc:"How many bytes at most." min:"1" max:"1048576" default:"16384"`
	TailBytes  *int64 `json:"tail_bytes,omitempty" doc:"Start this many bytes before the end instead of at offset." min:"1" max:"1048576"`
	WaitMS     *int64 `json:"wait_ms,omitempty" doc:"Where there is nothing at offset yet, how long to wait for new bytes or the end. With screen, how long to wait until the program in the foreground waits for input. More than 45000 is cut to it." min:"0" default:"0"`
	ANSI       string `json:"ansi,omitempty" doc:"strip leaves out the sequences that move a cursor or set colours; offsets are those of the stream all the same." enum:"keep,strip" default:"keep"`
	Screen     bool   `json:"screen,omitempty" doc:"Answer what a terminal would show now, as text, instead of the stream: for full-screen programs." default:"false"`
}

// ShellOutput is a part of a shell's terminal stream, or its screen.
type ShellOutput struct {
	Output
	Screen *Screen `json:"screen,omitempty" doc:"With screen: what a terminal shows now; data is then empty and next_offset the end of the stream."`
}

// Screen is what a terminal shows.
type Screen struct {
	Text      string `json:"text" doc:"Its rows from the top, a line each, without the blanks at their ends."`
	Cols      int    `json:"cols" doc:"Its width, in characters."`
	Rows      int    `json:"rows" doc:"Its height."`
	CursorCol int    `json:"cursor_col" doc:"Where the cursor is; 0 is the first column."`
	CursorRow int    `json:"cursor_row" doc:"Where the cursor is; 0 is the top row."`
	Alternate bool   `json:"alternate" doc:"Whether a full-screen program has the screen for itself."`
	Title     string `json:"title,omitempty" doc:"The window title that was set."`
}

// ResizeShellInput asks for another size of a shell's terminal.
type ResizeShellInput struct {
	ShellRef
	TerminalSize
}

// CloseShellInput asks to close a shell.
type CloseShellInput struct {
	ShellRef
	KeepBackground bool `json:"keep_background,omitempty" doc:"Leave alive what it started in the background; otherwise everything that descends from it is killed." default:"false"`
}
