package core

// Process is a program that lives in an environment now.
type Process struct {
	PID         int            `json:"pid" doc:"Its number, as seen inside; the system gives it to another once it has ended."`
	PPID        int            `json:"ppid" doc:"That of its parent. One that is not listed belongs to the sandbox."`
	State       string         `json:"state" doc:"running: on a processor, or waiting for one. sleeping: waiting for something. blocked: waiting for a disk or the like, and no signal ends that. stopped: by a signal, or traced. zombie: it has ended, and its parent has not asked how." enum:"running,sleeping,blocked,stopped,zombie"`
	Command     string         `json:"command" doc:"Its program and arguments, as it shows them itself, with spaces between them, cut after about 1000 bytes. Where it shows none, its name in brackets."`
	CPUPercent  float64        `json:"cpu_percent" doc:"How much of one core it used while it was looked at, a fifth of a second; of two cores up to 200."`
	CPUMS       int64          `json:"cpu_ms" doc:"User and system time until now, without that of its children."`
	MemoryBytes int64          `json:"memory_bytes" doc:"Resident memory; what it shares with others counts in each of them."`
	Threads     int            `json:"threads" doc:"How many threads it has."`
	StartedAt   Time           `json:"started_at" doc:"When it was started: the same each time, so that with pid it names this process and no later one."`
	CommandID   string         `json:"command_id,omitempty" doc:"The command that it descends from, also where that has ended. Of a shell's processes only those have one that the command started which runs in the shell now, or ran last."`
	ShellID     string         `json:"shell_id,omitempty" doc:"The shell that it descends from, also where that is closed. Where neither is there, the sandbox does not know any more what it descends from."`
	Listening   []ListenerInfo `json:"listening" doc:"The ports at which it accepts connections or datagrams, in the environment's own network."`
}

// ListenerInfo is a port that a process listens at.
type ListenerInfo struct {
	Protocol string `json:"protocol" doc:"What it speaks." enum:"tcp,tcp6,udp,udp6"`
	Address  string `json:"address" doc:"The address, for example 127.0.0.1; 0.0.0.0 and :: are all that there are."`
	Port     int    `json:"port" doc:"The port."`
}

// ListProcessesInput asks for the processes of an environment, in the order of their
// pids.
type ListProcessesInput struct {
	EnvironmentRef
	Paging
}

// ProcessRef names a process of an environment.
type ProcessRef struct {
	EnvironmentRef
	PID       int   `json:"pid" doc:"The process's number, as list_processes shows it and programs inside see it."`
	StartedAt *Time `json:"started_at,omitempty" doc:"The started_at that list_processes showed: where another process has the number by now, the call fails with process_replaced and does nothing."`
}

// SignalProcessInput asks to signal one process, or it and what descends from it.
type SignalProcessInput struct {
	ProcessRef
	Signal string `json:"signal,omitempty" doc:"The signal's name, with or without SIG: HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, STOP, TSTP or WINCH. KILL is answered when every process that it reached has ended." maxlen:"16" default:"TERM"`
	Tree   bool   `json:"tree,omitempty" doc:"Also signal every process that descends from it." default:"false"`
}

// SignaledProcess says what a signal did.
type SignaledProcess struct {
	PID     int    `json:"pid" doc:"The process's number."`
	Signal  string `json:"signal" doc:"The signal that was sent."`
	Reached int    `json:"reached" doc:"How many processes it was sent to."`
	Ended   bool   `json:"ended" doc:"Whether the process has ended by now. Where not it may do so in a moment: wait_process waits for that."`
}

// WaitProcessInput asks to wait for the end of a process.
type WaitProcessInput struct {
	ProcessRef
	WaitMS *int64 `json:"wait_ms,omitempty" doc:"How long to wait for its end before answering; 0 only looks. More than 45000 is cut to it." min:"0" default:"10000"`
}

// ProcessEnd says whether a process has ended, and how.
type ProcessEnd struct {
	Ended    bool   `json:"ended" doc:"Whether it has ended; a zombie has."`
	ExitCode *int   `json:"exit_code,omitempty" doc:"Where it has exited, and this host tells: not every kernel does of processes that others started."`
	Signal   string `json:"signal,omitempty" doc:"The signal that ended it, for example TERM, where this host tells."`
	WaitedMS int64  `json:"waited_ms" doc:"How long this call waited."`
}
