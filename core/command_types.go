package core

// CommandStatus says what became of a command.
type CommandStatus string

// The statuses. None is invented: a command has ended when its leader was
// waited for or its box is gone.
const (
	CommandRunning     CommandStatus = "running"
	CommandExited      CommandStatus = "exited"
	CommandSignaled    CommandStatus = "signaled"
	CommandTimedOut    CommandStatus = "timed_out"
	CommandOutOfMemory CommandStatus = "out_of_memory"
	CommandKilled      CommandStatus = "killed"
	CommandLost        CommandStatus = "lost"
)

// The reasons of a command that was killed or lost.
const (
	ReasonSignal              = "signal"
	ReasonShellClosed         = "shell_closed"
	ReasonEnvironmentReset    = "environment_reset"
	ReasonEnvironmentDeleted  = "environment_deleted"
	ReasonEnvironmentArchived = "environment_archived"
	ReasonServiceStopped      = "service_stopped"
	ReasonSandboxFailed       = "sandbox_failed"
	// The folder of the environment grew beyond its limit of that name.
	ReasonDiskBytes = "disk_bytes"
	ReasonFiles     = "files"
	// The host's disk is nearly full, and the environment was filling it.
	ReasonDiskFull = "disk_full"
)

// Command is one run of a program, running or ended.
type Command struct {
	ID              string        `json:"id" doc:"cmd_ and 26 characters."`
	EnvironmentID   string        `json:"environment_id" doc:"Where it runs."`
	ShellID         string        `json:"shell_id,omitempty" doc:"The shell that it runs in."`
	Command         string        `json:"command" doc:"What was run: the string for bash, or argv quoted for reading. Cut after 4096 bytes."`
	Cwd             string        `json:"cwd" doc:"The directory that it started in; in a shell, once it has ended, the shell's directory then."`
	Status          CommandStatus `json:"status" doc:"running until its leader was waited for. out_of_memory: the environment's memory was used up, and the kernel killed a process of it for that. killed: ended by SIGKILL, see reason. lost: the service stopped while it ran; its output up to then is kept." enum:"running,exited,signaled,timed_out,out_of_memory,killed,lost"`
	ExitCode        *int          `json:"exit_code,omitempty" doc:"With status exited, and with out_of_memory where it exited."`
	Signal          string        `json:"signal,omitempty" doc:"With status signaled: the signal's name, for example TERM."`
	Reason          string        `json:"reason,omitempty" doc:"With status killed or lost. disk_bytes, files: the environment grew beyond that limit. disk_full: it was filling the host's disk, which is nearly full." enum:"signal,shell_closed,environment_reset,environment_archived,environment_deleted,disk_bytes,files,disk_full,service_stopped,sandbox_failed"`
	ShellClosed     bool          `json:"shell_closed,omitempty" doc:"Whether its shell ended with it."`
	StartedAt       Time          `json:"started_at" doc:"When it was started; while it waits in line in a shell, when it came there."`
	EndedAt         *Time         `json:"ended_at,omitempty" doc:"When it ended."`
	DurationMS      int64         `json:"duration_ms" doc:"How long it ran, or has run until now."`
	Usage           *CommandUsage `json:"usage,omitempty" doc:"What it used; once it has ended, where anything of it is known."`
	WaitingForInput *bool         `json:"waiting_for_input" doc:"Whether what runs in the foreground of its terminal is blocked reading it: it waits for write_input, in a shell for write_shell. Null where this host cannot tell, and in lists for one that runs."`
	Stdout          *Excerpt      `json:"stdout,omitempty" doc:"The beginning and the end of its standard output. Absent in lists."`
	Stderr          *Excerpt      `json:"stderr,omitempty" doc:"The beginning and the end of its standard error; empty with merge_stderr. Absent in lists."`
	LateFromOffset  *LateOffsets  `json:"late_from_offset,omitempty" doc:"Where in each stream the bytes start that background children wrote after the command had ended."`
	WaitedMS        *int64        `json:"waited_ms,omitempty" doc:"How long this call waited for the end, or until the command waited for input."`
	Next            string        `json:"next,omitempty" doc:"What to call next, where it runs on, a limit ended it or a process of it, or its output was cut."`
}

// CommandUsage is what the command used until its leader ended. It is there where
// one of its fields is known.
type CommandUsage struct {
	CPUMS           *int64 `json:"cpu_ms" doc:"User and system time, of all its processes where the host counts that, else of its leader and of the children that it waited for. Null where it cannot be told apart: in a shell of which other processes live."`
	PeakMemoryBytes *int64 `json:"peak_memory_bytes" doc:"Of all its processes together, where the host counts that; else the largest resident set of one of them. Null where it cannot be told apart."`
	Processes       *int64 `json:"processes" doc:"How many processes and threads it had at one time, at most, as the kernel counts them; one that a limit refused may be among them. Null where the host does not count that, and in a shell."`
}

// Excerpt is the beginning and the end of a stream.
type Excerpt struct {
	Text         string `json:"text" doc:"The bytes. Where truncated, beginning and end with a line between them that says what was left out; as base64 the beginning only."`
	Encoding     string `json:"encoding" doc:"utf-8, or base64 where the bytes are not UTF-8." enum:"utf-8,base64"`
	TotalBytes   int64  `json:"total_bytes" doc:"How long the stream is."`
	Truncated    bool   `json:"truncated" doc:"Whether text is not all of it."`
	OmittedBytes int64  `json:"omitted_bytes" doc:"How many bytes are not in text."`
}

// LateOffsets are the ends of the streams at the moment the command ended.
type LateOffsets struct {
	Stdout int64 `json:"stdout" doc:"In stream stdout."`
	Stderr int64 `json:"stderr" doc:"In stream stderr."`
	TTY    int64 `json:"tty" doc:"In stream tty."`
	All    int64 `json:"all" doc:"In stream all."`
}

// ExecInput asks to run one command.
type ExecInput struct {
	EnvironmentID  string            `json:"environment_id,omitempty" doc:"Where to run it. May be left out in local stdio use only: the default environment, made on first use." maxlen:"64"`
	Command        *string           `json:"command,omitempty" doc:"A script for bash -c. Give this or argv. At most 1 MiB. An empty one does nothing and exits 0."`
	Argv           []string          `json:"argv,omitempty" doc:"A program and its arguments, run without a shell."`
	Cwd            string            `json:"cwd,omitempty" doc:"The directory to start in, absolute or below the workspace; default the workspace." maxlen:"4096"`
	Env            map[string]string `json:"env,omitempty" doc:"Variables to set beside the documented ones."`
	Stdin          string            `json:"stdin,omitempty" doc:"Standard input; default empty, at its end. At most 8 MiB."`
	StdinOpen      bool              `json:"stdin_open,omitempty" doc:"Keep standard input open after stdin, for write_input." default:"false"`
	TTY            *TerminalSize     `json:"tty,omitempty" doc:"Give it a terminal of this size as standard input, output and error: all output is then in stdout, and write_input types into it."`
	MergeStderr    bool              `json:"merge_stderr,omitempty" doc:"Write standard error into standard output, in exact order." default:"false"`
	WaitMS         *int64            `json:"wait_ms,omitempty" doc:"How long to wait for the end before answering; the command runs on after that. The wait ends early where the command waits for input at a terminal. More than 45000 is cut to it." min:"0" default:"10000"`
	TimeoutMS      *int64            `json:"timeout_ms,omitempty" doc:"When to end the command and its whole process tree." min:"1" max:"86400000" default:"600000"`
	Network        *bool             `json:"network,omitempty" doc:"true is refused where the environment has no network."`
	OutputBytes    *int64            `json:"output_bytes,omitempty" doc:"How much of each stream to answer inline; the rest is kept for read_output." min:"0" max:"1048576" default:"16384"`
	IdempotencyKey string            `json:"idempotency_key,omitempty" doc:"The same key and input again gives the same command, also after a restart; it is run once. wait_ms and output_bytes may differ. Keys are kept for the deployment's ENVAPI_IDEMPOTENCY_RETENTION_MS, 24 hours by default." minlen:"1" maxlen:"128"`
	Restoring
}

// GetCommandInput asks for one command.
type GetCommandInput struct {
	CommandID   string `json:"command_id" doc:"The command's id." maxlen:"64"`
	WaitMS      *int64 `json:"wait_ms,omitempty" doc:"How long to wait for its end before answering. The wait ends early where the command waits for input at a terminal. More than 45000 is cut to it." min:"0" default:"0"`
	OutputBytes *int64 `json:"output_bytes,omitempty" doc:"How much of each stream to answer inline." min:"0" max:"1048576" default:"16384"`
}

// ListCommandsInput asks for commands, newest first.
type ListCommandsInput struct {
	EnvironmentID string `json:"environment_id,omitempty" doc:"Only those of this environment." maxlen:"64"`
	ShellID       string `json:"shell_id,omitempty" doc:"Only those of this shell." maxlen:"64"`
	Status        string `json:"status,omitempty" doc:"Only those with this status." enum:"running,exited,signaled,timed_out,out_of_memory,killed,lost"`
	Paging
}

// SignalCommandInput asks to signal a command's whole process tree.
type SignalCommandInput struct {
	CommandID string `json:"command_id" doc:"The command's id." maxlen:"64"`
	Signal    string `json:"signal,omitempty" doc:"The signal's name, with or without SIG: HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, STOP, TSTP or WINCH. In a shell, INT ends the command as ctrl-c does, while TERM and HUP reach what it has started, and a loop goes on. KILL is answered when every process of the tree is gone." maxlen:"16" default:"TERM"`
}

// Stream is a part of a command's output.
type Stream string

// The streams. TTY is what was written to a terminal beside the command's own
// output, and all there is of a shell. All holds them in the order of arrival and
// has offsets of its own.
const (
	StreamStdout Stream = "stdout"
	StreamStderr Stream = "stderr"
	StreamTTY    Stream = "tty"
	StreamAll    Stream = "all"
)

// ReadOutputInput asks for a part of a command's output.
type ReadOutputInput struct {
	CommandID  string `json:"command_id" doc:"The command's id." maxlen:"64"`
	Stream     string `json:"stream,omitempty" doc:"Which output; tty is what a shell's command wrote to its terminal beside them, all is everything in the order of arrival. Each has its own offsets." enum:"stdout,stderr,tty,all" default:"all"`
	Offset     *int64 `json:"offset,omitempty" doc:"The byte to start at, or the next_offset of the answer before. Beyond the end there is nothing yet, which is no error." min:"0" default:"0"`
	LimitBytes *int64 `json:"limit_bytes,omitempty" doc:"How many bytes at most." min:"1" max:"1048576" default:"16384"`
	TailBytes  *int64 `json:"tail_bytes,omitempty" doc:"Start this many bytes before the end instead of at offset." min:"1" max:"1048576"`
	WaitMS     *int64 `json:"wait_ms,omitempty" doc:"Where there is nothing at offset yet, how long to wait for new bytes or the end. More than 45000 is cut to it." min:"0" default:"0"`
	ANSI       string `json:"ansi,omitempty" doc:"strip leaves out the sequences that move a cursor or set colours; offsets are those of the stream all the same." enum:"keep,strip" default:"keep"`
}

// Output is a part of a command's output. An offset means the same byte for
// ever.
type Output struct {
	Data         string `json:"data" doc:"The bytes; a character is never cut in two."`
	Encoding     string `json:"encoding" doc:"utf-8, or base64 where the bytes are not UTF-8." enum:"utf-8,base64"`
	Offset       int64  `json:"offset" doc:"Where data starts."`
	NextOffset   int64  `json:"next_offset" doc:"Where to read on."`
	TotalBytes   int64  `json:"total_bytes" doc:"How long the stream is now."`
	DroppedBytes int64  `json:"dropped_bytes" doc:"How many bytes between beginning and end were dropped, because the log is bounded."`
	EOF          bool   `json:"eof" doc:"Whether the command, or the shell, has ended and data reaches the end. A background child may still write later; total_bytes then grows."`
}
