package core

// EnvironmentState says whether an environment can be used.
type EnvironmentState string

// The states. Active and archived last; the others are passing: what a crash has cut
// short in one of them the next start finishes or takes back.
const (
	StateActive    EnvironmentState = "active"
	StateArchived  EnvironmentState = "archived"
	StateArchiving EnvironmentState = "archiving"
	StateRestoring EnvironmentState = "restoring"
	StateResetting EnvironmentState = "resetting"
	StateDeleting  EnvironmentState = "deleting"
)

// Environment is an isolated workspace as its owner sees it.
type Environment struct {
	ID             string            `json:"id" doc:"env_ and 26 characters."`
	Name           string            `json:"name" doc:"The name given at creation, or empty."`
	Labels         map[string]string `json:"labels" doc:"The labels given by the caller."`
	State          EnvironmentState  `json:"state" doc:"active, archived, or in passing archiving, restoring, resetting or deleting. Using an archived one restores it." enum:"active,archived,archiving,restoring,resetting,deleting"`
	Network        bool              `json:"network" doc:"Whether commands have a network; fixed at creation."`
	WorkspacePath  string            `json:"workspace_path" doc:"The folder as its commands see it; it survives restarts."`
	SandboxTier    string            `json:"sandbox_tier" doc:"What contains its commands." enum:"directory,user,namespace"`
	CreatedAt      Time              `json:"created_at" doc:"When it was created."`
	LastActivityAt Time              `json:"last_activity_at" doc:"When it was last used: by a command that started or ended, a shell that was opened, used, read or closed, a file operation, reads too, a signal, or a reading of output. Looking at it, or at its commands and shells, is no use."`
	IdleMS         *int64            `json:"idle_ms,omitempty" doc:"How long it may be idle before it is archived, within the deployment's bounds, where it has a time of its own."`
	ArchivesAt     *Time             `json:"archives_at,omitempty" doc:"When it will be archived, at the earliest, unless it is used before; absent where it is not active, while something runs in it, and where it never will be."`
	ArchivedAt     *Time             `json:"archived_at,omitempty" doc:"When it was archived, while it is."`
	ArchiveBytes   *int64            `json:"archive_bytes,omitempty" doc:"What its archive takes, while it is archived."`
	Usage          EnvironmentUsage  `json:"usage" doc:"What it uses, against each limit."`
}

// EnvironmentUsage counts what an environment uses, by the names of the limits.
type EnvironmentUsage struct {
	Shells          Usage `json:"shells" doc:"Shells that are open now."`
	RunningCommands Usage `json:"running_commands" doc:"Commands that run now, or wait in line in a shell."`
	Processes       Usage `json:"processes" doc:"Processes that live now, background ones included."`
	MemoryBytes     Usage `json:"memory_bytes" doc:"Memory of its processes now; null where this host does not count it."`
	DiskBytes       Usage `json:"disk_bytes" doc:"Disk space of the folder: what files take, so that holes in them do not count. Null in lists, since only a walk through the folder can count it, save of one that is archived."`
	Files           Usage `json:"files" doc:"Files, directories and other entries in the folder. Null in lists, save of one that is archived."`
}

// Usage is one count against its limit.
type Usage struct {
	Used    *int64 `json:"used" doc:"The count; null where it could not be taken in time."`
	Allowed *int64 `json:"allowed" doc:"The limit; null where there is none."`
}

// EnvironmentLimits are the limits that a caller may lower for one environment.
type EnvironmentLimits struct {
	Shells          *int   `json:"shells,omitempty" doc:"Open shells at one time." min:"1"`
	RunningCommands *int   `json:"running_commands,omitempty" doc:"Commands at one time, with those that wait in line in shells." min:"1"`
	Processes       *int   `json:"processes,omitempty" doc:"Processes at one time. With fewer a shell cannot even start programs." min:"16"`
	MemoryBytes     *int64 `json:"memory_bytes,omitempty" doc:"Memory of all its processes, with the files of /tmp and /dev/shm where those are in memory. A command that needs more is ended as out_of_memory; where memory is not enforced (see get_status), each process by itself is refused more." min:"67108864"`
	DiskBytes       *int64 `json:"disk_bytes,omitempty" doc:"Disk space of its folder, and the length of its longest file. What runs is killed when the folder is seen to grow beyond it." min:"1048576"`
	Files           *int64 `json:"files,omitempty" doc:"Files, directories and other entries of its folder. What runs is killed when they are seen to grow beyond it." min:"16"`
}

// EnvironmentRef names the environment that an operation is about.
type EnvironmentRef struct {
	EnvironmentID string `json:"environment_id" doc:"The environment's id." maxlen:"64"`
}

// CreateEnvironmentInput asks for a new environment.
type CreateEnvironmentInput struct {
	Name           string            `json:"name,omitempty" doc:"A name for people; it need not be unique." maxlen:"128"`
	Labels         map[string]string `json:"labels,omitempty" doc:"Up to 32 labels; keys up to 64 characters, values up to 256."`
	Network        bool              `json:"network,omitempty" doc:"Whether its commands may reach the network; refused where the deployment allows none." default:"false"`
	Limits         EnvironmentLimits `json:"limits,omitempty" doc:"Limits for this environment, at most the deployment's."`
	IdleMS         *int64            `json:"idle_ms,omitempty" doc:"How long it may be idle before it is archived; default what your settings or the deployment say. It is kept within the deployment's bounds." min:"1"`
	IdempotencyKey string            `json:"idempotency_key,omitempty" doc:"The same key and input again gives the same environment, also after a restart. Keys are kept for the deployment's ENVAPI_IDEMPOTENCY_RETENTION_MS, 24 hours by default." minlen:"1" maxlen:"128"`
}

// ListEnvironmentsInput asks for the caller's environments, newest first.
type ListEnvironmentsInput struct {
	State string `json:"state,omitempty" doc:"Only those in this state." enum:"active,archived,archiving,restoring,resetting,deleting"`
	Name  string `json:"name,omitempty" doc:"Only those of exactly this name." maxlen:"128"`
	Label string `json:"label,omitempty" doc:"Only those with this label, as key or key=value." maxlen:"321"`
	Paging
}

// UpdateEnvironmentInput changes what is given and leaves the rest.
type UpdateEnvironmentInput struct {
	EnvironmentRef
	Name   *string            `json:"name,omitempty" doc:"The new name." maxlen:"128"`
	Labels *map[string]string `json:"labels,omitempty" doc:"The new labels; they replace all the old ones."`
	IdleMS *int64             `json:"idle_ms,omitempty" doc:"How long it may be idle before it is archived; 0 goes back to what your settings or the deployment say." min:"0"`
	Limits *EnvironmentLimits `json:"limits,omitempty" doc:"New limits, at most the deployment's; those left out stay. Those of disk_bytes, files, shells and running_commands hold at once; those of processes, memory_bytes and of the longest file from the next start of the sandbox on: at the latest after a reset."`
}

// ForkEnvironmentInput asks for a new environment with a copy of another's folder.
type ForkEnvironmentInput struct {
	EnvironmentRef
	Name           string            `json:"name,omitempty" doc:"The new one's name, for people; it need not be unique." maxlen:"128"`
	Labels         map[string]string `json:"labels,omitempty" doc:"The new one's labels: up to 32; keys up to 64 characters, values up to 256."`
	Limits         EnvironmentLimits `json:"limits,omitempty" doc:"The new one's limits, at most the deployment's; those left out are as of the environment that is forked."`
	IdleMS         *int64            `json:"idle_ms,omitempty" doc:"How long the new one may be idle before it is archived; left out, as of the environment that is forked." min:"1"`
	IdempotencyKey string            `json:"idempotency_key,omitempty" doc:"The same key and input again gives the same new environment, also after a restart. Keys are kept for the deployment's ENVAPI_IDEMPOTENCY_RETENTION_MS, 24 hours by default." minlen:"1" maxlen:"128"`
}

// Nothing is the output of an operation that answers without a body.
type Nothing struct{}
