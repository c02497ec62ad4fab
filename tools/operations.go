package tools

import (
	"net/http"
	"slices"

	"envapi/core"
)

// The nouns that group the operations.
const (
	environments = "environments"
	commands     = "commands"
	shells       = "shells"
	processes    = "processes"
	files        = "files"
	service      = "service"
)

// Nouns says what each of them is.
var Nouns = map[string]string{
	environments: "Isolated workspaces: a folder that survives restarts, in which commands run contained.",
	commands:     "Programs that run, or ran, in an environment, and their output.",
	shells:       "Shells that live on between calls, and their terminals.",
	processes:    "What lives in an environment now, whoever started it.",
	files:        "The files of an environment's workspace. Paths are relative to it, and never lead out.",
	service:      "The service itself, as its callers see it.",
}

// Management is the toolset of what an assistant at work seldom needs.
const Management = "management"

// Operations is the table: every operation that exists, in the order of the
// documents. No route and no tool is registered anywhere else.
func Operations() []Operation {
	return slices.Concat(environmentRows(), lifecycleRows(), commandRows(), shellRows(), processRows(), fileRows(), serviceRows())
}

func environmentPath(e core.Environment) string { return "/v1/environments/" + e.ID }

func environmentRows() []Operation {
	return []Operation{
		Define(Operation{
			Name: "create_environment", Title: "Create an environment", Noun: environments,
			Description: "Makes an isolated workspace: an empty folder that survives restarts, in which commands run contained. Make one for a task and use its id for everything that belongs to the task; delete it when the task is over.",
			Method:      http.MethodPost, Path: "/v1/environments", Scope: core.ScopeEnvironmentsWrite,
			Hints:   Hints{},
			Success: created(environmentPath),
			Errors:  []core.Code{core.CodeQuotaExceeded, core.CodeIdempotencyMismatch, core.CodeNetworkRefused, core.CodeNotFound, core.CodeDiskFull},
		}, (*core.Service).CreateEnvironment),
		Define(Operation{
			Name: "list_environments", Title: "List environments", Noun: environments,
			Description: "Lists your environments, newest first. Use it to find an environment whose id you no longer have.",
			Method:      http.MethodGet, Path: "/v1/environments", Scope: core.ScopeEnvironmentsRead,
			Hints:   Hints{ReadOnly: true, Idempotent: true},
			Success: done(),
		}, (*core.Service).ListEnvironments),
		Define(Operation{
			Name: "get_environment", Title: "Look at an environment", Noun: environments,
			Description: "Tells an environment's state, where its folder is as commands see it, and what it uses against each limit.",
			Method:      http.MethodGet, Path: "/v1/environments/{environment_id}", Scope: core.ScopeEnvironmentsRead,
			Hints:   Hints{ReadOnly: true, Idempotent: true},
			Success: done(),
			Errors:  []core.Code{core.CodeNotFound},
		}, (*core.Service).GetEnvironment),
		Define(Operation{
			Name: "update_environment", Title: "Change an environment", Noun: environments,
			Description: "Changes an environment's name, labels, idle time or limits. What is left out stays as it is.",
			Method:      http.MethodPatch, Path: "/v1/environments/{environment_id}", Scope: core.ScopeEnvironmentsWrite,
			Hints:   Hints{Destructive: true, Idempotent: true},
			Toolset: Management,
			Success: done(),
			Errors:  []core.Code{core.CodeNotFound, core.CodeEnvironmentBusy},
		}, (*core.Service).UpdateEnvironment),
	}
}

// lifecycleRows are of what becomes of an environment with all that is in it.
func lifecycleRows() []Operation {
	return []Operation{
		Define(Operation{
			Name: "reset_environment", Title: "Reset an environment", Noun: environments,
			Description: "Kills everything that runs in an environment and empties its folder; the id stays. Use it to start over. What was in the folder is lost.",
			Method:      http.MethodPost, Path: "/v1/environments/{environment_id}/reset", Scope: core.ScopeEnvironmentsWrite,
			Hints:   Hints{Destructive: true, Idempotent: true},
			Success: done(),
			Errors:  []core.Code{core.CodeNotFound, core.CodeEnvironmentBusy, core.CodeQuotaExceeded, core.CodeDiskFull},
		}, (*core.Service).ResetEnvironment),
		Define(Operation{
			Name: "archive_environment", Title: "Archive an environment", Noun: environments,
			Description: "Kills everything that runs in an environment, packs its folder and frees the space; commands and their output stay. It counts against archived_environments then, and no longer as one in use. Using it restores it by itself. One that is archived already is answered as it is.",
			Method:      http.MethodPost, Path: "/v1/environments/{environment_id}/archive", Scope: core.ScopeEnvironmentsWrite,
			Hints:   Hints{Destructive: true, Idempotent: true},
			Toolset: Management,
			Success: done(),
			Errors:  []core.Code{core.CodeNotFound, core.CodeEnvironmentBusy, core.CodeQuotaExceeded, core.CodeDiskFull},
		}, (*core.Service).ArchiveEnvironment),
		Define(Operation{
			Name: "restore_environment", Title: "Restore an environment", Noun: environments,
			Description: "Lays the folder of an archived environment out again, bit for bit, and answers when it can be used. Commands, shells and file operations do so by themselves. One that is active is answered as it is.",
			Method:      http.MethodPost, Path: "/v1/environments/{environment_id}/restore", Scope: core.ScopeEnvironmentsWrite,
			Hints:   Hints{Idempotent: true},
			Toolset: Management,
			Success: done(),
			Errors:  []core.Code{core.CodeNotFound, core.CodeEnvironmentBusy, core.CodeQuotaExceeded, core.CodeDiskFull},
		}, (*core.Service).RestoreEnvironment),
		Define(Operation{
			Name: "fork_environment", Title: "Fork an environment", Noun: environments,
			Description: "Makes a new environment with a copy of another's folder, for example to try something without touching what is there. What runs is not copied, and goes on; files are copied as they are when they are read, so end what writes to them where they must belong together. An archived one is restored for it.",
			Method:      http.MethodPost, Path: "/v1/environments/{environment_id}/fork", Scope: core.ScopeEnvironmentsWrite,
			Hints:   Hints{},
			Toolset: Management,
			Success: created(environmentPath),
			Errors:  []core.Code{core.CodeNotFound, core.CodeEnvironmentBusy, core.CodeQuotaExceeded, core.CodeIdempotencyMismatch, core.CodeDiskFull},
		}, (*core.Service).ForkEnvironment),
		Define(Operation{
			Name: "delete_environment", Title: "Delete an environment", Noun: environments,
			Description: "Kills everything that runs in an environment and deletes it with its folder, its commands and their output, for good.",
			Method:      http.MethodDelete, Path: "/v1/environments/{environment_id}", Scope: core.ScopeEnvironmentsWrite,
			Hints:   Hints{Destructive: true, Idempotent: true},
			Success: noContent(),
			Errors:  []core.Code{core.CodeNotFound, core.CodeEnvironmentBusy},
		}, (*core.Service).DeleteEnvironment),
	}
}

func commandRows() []Operation {
	return []Operation{
		Define(Operation{
			Name: "exec", Title: "Run a command", Noun: commands,
			Description: "Runs a command in an environment and answers with its result, or, if it still runs after wait_ms, with its id to follow it by get_command and read_output. Each command is a fresh process that starts in the workspace: a cd or an export does not last to the next one, files do; open a shell where it must. Standard input is empty unless you give stdin, stdin_open or tty. A non-zero exit code, a signal or a timeout is a result, not an error.",
			Method:      http.MethodPost, Path: "/v1/exec", Scope: core.ScopeExec,
			Hints:        Hints{Destructive: true, OpenWorld: true},
			Success:      doneOrGoesOn(func(c core.Command) bool { return c.Status == core.CommandRunning }),
			Errors:       []core.Code{core.CodeNotFound, core.CodeEnvironmentBusy, core.CodeEnvironmentArchived, core.CodeQuotaExceeded, core.CodeIdempotencyMismatch, core.CodeNetworkRefused, core.CodeTooLarge, core.CodeDiskFull},
			ToolDefaults: map[string]any{"output_bytes": 8192},
		}, (*core.Service).Exec),
		Define(Operation{
			Name: "list_commands", Title: "List commands", Noun: commands,
			Description: "Lists commands, running and ended, newest first. Use it to find a command whose id you no longer have.",
			Method:      http.MethodGet, Path: "/v1/commands", Scope: core.ScopeEnvironmentsRead,
			Hints:   Hints{ReadOnly: true, Idempotent: true},
			Success: done(),
			Errors:  []core.Code{core.CodeNotFound},
		}, (*core.Service).ListCommands),
		Define(Operation{
			Name: "get_command", Title: "Look at a command", Noun: commands,
			Description: "Tells how a command stands or ended, with the beginning and the end of its output. With wait_ms it waits for the end.",
			Method:      http.MethodGet, Path: "/v1/commands/{command_id}", Scope: core.ScopeEnvironmentsRead,
			Hints:        Hints{ReadOnly: true, Idempotent: true},
			Success:      done(),
			Errors:       []core.Code{core.CodeNotFound},
			ToolDefaults: map[string]any{"output_bytes": 8192},
		}, (*core.Service).GetCommand),
		Streamed(Define(Operation{
			Name: "read_output", Title: "Read a command's output", Noun: commands,
			Description: "Reads a command's output from an offset on, while it runs and after it has ended; nothing is lost where nobody reads. Go on at next_offset; with wait_ms it waits for new bytes. With tail_bytes it gives the end.",
			Method:      http.MethodGet, Path: "/v1/commands/{command_id}/output", Scope: core.ScopeEnvironmentsRead,
			Hints:        Hints{ReadOnly: true, Idempotent: true},
			Success:      done(),
			Errors:       []core.Code{core.CodeNotFound, core.CodeOutputExpired},
			ToolDefaults: map[string]any{"ansi": "strip"},
		}, (*core.Service).ReadOutput), (*core.Service).StreamOutput),
		Define(Operation{
			Name: "write_input", Title: "Write to a command's input", Noun: commands,
			Description: "Writes to the standard input of a command that runs and was started with stdin_open or tty, for example the answer to a prompt, with a newline at its end. It answers how many bytes were taken, and the command.",
			Method:      http.MethodPost, Path: "/v1/commands/{command_id}/input", Scope: core.ScopeExec,
			Hints:        Hints{Destructive: true, OpenWorld: true},
			Success:      done(),
			Errors:       []core.Code{core.CodeNotFound, core.CodeInputClosed, core.CodeTooLarge},
			ToolDefaults: map[string]any{"output_bytes": 8192},
		}, (*core.Service).WriteInput),
		Define(Operation{
			Name: "signal_command", Title: "Signal a command", Noun: commands,
			Description: "Sends a signal to a command and every process that descends from it. TERM asks it to end, KILL ends it. A command that waits in line in a shell is taken out of it; one that has ended answers with its result.",
			Method:      http.MethodPost, Path: "/v1/commands/{command_id}/signal", Scope: core.ScopeExec,
			Hints:   Hints{Destructive: true},
			Success: done(),
			Errors:  []core.Code{core.CodeNotFound},
		}, (*core.Service).SignalCommand),
	}
}

func serviceRows() []Operation {
	return []Operation{
		Define(Operation{
			Name: "get_status", Title: "Look at the service", Noun: service,
			Description: "Tells who you are, what you may use and have used, and what contains your commands.",
			Method:      http.MethodGet, Path: "/v1/status", Scope: core.ScopeEnvironmentsRead,
			Hints:   Hints{ReadOnly: true, Idempotent: true},
			Success: done(),
		}, (*core.Service).GetStatus),
	}
}
