package core

import "envapi/sandbox"

// Status is who the caller is, what they may use, and what contains it.
type Status struct {
	Account        string         `json:"account" doc:"Whom the token names."`
	Profile        string         `json:"profile" doc:"Its profile."`
	Scopes         []Scope        `json:"scopes" doc:"What the token permits."`
	Usage          AccountUsage   `json:"usage" doc:"What the caller uses, against each limit."`
	Limits         StatusLimits   `json:"limits" doc:"What holds for each environment and call."`
	Sandbox        sandbox.Report `json:"sandbox" doc:"What contains commands here, control by control."`
	NetworkAllowed bool           `json:"network_allowed" doc:"Whether the deployment allows environments with a network."`
}

// AccountUsage counts against the quotas of an account and a profile.
type AccountUsage struct {
	EnvironmentsPerAccount Usage `json:"environments_per_account" doc:"Environments of all profiles of the account."`
	EnvironmentsPerProfile Usage `json:"environments_per_profile" doc:"Environments of this profile."`
	ArchivedEnvironments   Usage `json:"archived_environments" doc:"Archived environments of all profiles of the account, which the two above do not count."`
	TerminalsPerAccount    Usage `json:"terminals_per_account" doc:"Open terminals, those of shells and of commands with tty, of all profiles of the account."`
}

// StatusLimits are the limits of one environment and the caps of one call.
type StatusLimits struct {
	RequestsPerSecond int   `json:"requests_per_second" doc:"Requests of the account in a second, over all doors; for a moment twenty times as many. More are answered rate_limited. 0 where as many are answered as come."`
	Shells            int   `json:"shells" doc:"Open shells at one time, per environment."`
	RunningCommands   int   `json:"running_commands" doc:"Commands at one time, with those that wait in line in shells, per environment."`
	Processes         int   `json:"processes" doc:"Processes at one time, per environment."`
	MemoryBytes       int64 `json:"memory_bytes" doc:"Memory of all processes, per environment."`
	CPUPercent        int   `json:"cpu_percent" doc:"Percent of one core, per environment; 0 where there is no more than a fair share."`
	DiskBytes         int64 `json:"disk_bytes" doc:"Disk space of the folder, and the length of the longest file, per environment."`
	Files             int64 `json:"files" doc:"Files, directories and other entries of the folder, per environment."`
	MaxWaitMS         int64 `json:"max_wait_ms" doc:"The longest wait_ms."`
	DefaultTimeoutMS  int64 `json:"default_timeout_ms" doc:"The timeout_ms of an exec that names none."`
	MaxTimeoutMS      int64 `json:"max_timeout_ms" doc:"The longest timeout_ms."`
}
