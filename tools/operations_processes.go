package tools

import (
	"net/http"

	"envapi/core"
)

func processRows() []Operation {
	return []Operation{
		Define(Operation{
			Name: "list_processes", Title: "List processes", Noun: processes,
			Description: "Lists what lives in an environment now, in the order of the pids, background processes included: what each does, uses and listens at, and which command or shell it descends from. Use it to find out what is still running, what a command has left behind, what takes the memory, or whether a server listens yet. It takes a fifth of a second.",
			Method:      http.MethodGet, Path: processRoutes, Scope: core.ScopeEnvironmentsRead,
			Hints:   Hints{ReadOnly: true, Idempotent: true},
			Success: done(),
			Errors:  []core.Code{core.CodeNotFound},
		}, (*core.Service).ListProcesses),
		Define(Operation{
			Name: "signal_process", Title: "Signal a process", Noun: processes,
			Description: "Sends a signal to one process of an environment, with tree also to everything that descends from it. TERM asks it to end, KILL ends it. Use it for what a command has left in the background, or for one process of many; signal_command ends a command as a whole. Give the started_at of list_processes too, so that no other process is hit that has the pid by now.",
			Method:      http.MethodPost, Path: processRoutes + "/{pid}/signal", Scope: core.ScopeExec,
			Hints:   Hints{Destructive: true},
			Success: done(),
			Errors:  []core.Code{core.CodeNotFound, core.CodeProcessReplaced},
		}, (*core.Service).SignalProcess),
		Define(Operation{
			Name: "wait_process", Title: "Wait for a process", Noun: processes,
			Description: "Waits until a process of an environment has ended, and tells how where this host can. Use it for what a command has left in the background; get_command waits for a command. A process that is not there any more is not_found.",
			Method:      http.MethodGet, Path: processRoutes + "/{pid}/wait", Scope: core.ScopeEnvironmentsRead,
			Hints:   Hints{ReadOnly: true, Idempotent: true},
			Success: done(),
			Errors:  []core.Code{core.CodeNotFound, core.CodeProcessReplaced},
		}, (*core.Service).WaitProcess),
	}
}

// processRoutes is what the routes of processes begin with.
const processRoutes = "/v1/environments/{environment_id}/processes"
