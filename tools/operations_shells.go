package tools

import (
	"net/http"

	"envapi/core"
)

func shellRows() []Operation {
	return append(shellLifeRows(),
		attachRow(),
		Define(Operation{
			Name: "run_in_shell", Title: "Run a command in a shell", Noun: shells,
			Description: "Runs a command in a shell of kind command and answers with its result, or, if it still runs after wait_ms, with its id to follow it by get_command and read_output. What a cd, an export, a function or a set option changed lasts to the next one. One runs at a time: while another does it fails with shell_busy, or waits in line with queue. Its standard input is the shell's terminal: where it waits for input, the answer comes at once and says so, and write_shell types. A command that ends the shell (exit, exec, set -e, kill -9 $$) says shell_closed, and what the shell had in the background ends with it. A non-zero exit code, a signal or a timeout is a result, not an error.",
			Method:      http.MethodPost, Path: "/v1/shells/{shell_id}/run", Scope: core.ScopeExec,
			Hints:        Hints{Destructive: true, OpenWorld: true},
			Success:      doneOrGoesOn(func(c core.Command) bool { return c.Status == core.CommandRunning }),
			Errors:       []core.Code{core.CodeNotFound, core.CodeEnvironmentBusy, core.CodeQuotaExceeded, core.CodeShellBusy, core.CodeShellClosed, core.CodeIdempotencyMismatch, core.CodeTooLarge, core.CodeDiskFull},
			ToolDefaults: map[string]any{"output_bytes": 8192},
		}, (*core.Service).RunInShell),
		Define(Operation{
			Name: "write_shell", Title: "Type into a shell", Noun: shells,
			Description: "Types text and keys into a shell's terminal, for what runs in its foreground: an answer to a prompt with a newline at its end, or keys such as ctrl-c, up and enter. In a shell of kind command only while a command runs; what it did not read is dropped when it ends.",
			Method:      http.MethodPost, Path: "/v1/shells/{shell_id}/input", Scope: core.ScopeExec,
			Hints:   Hints{Destructive: true, OpenWorld: true},
			Success: done(),
			Errors:  []core.Code{core.CodeNotFound, core.CodeShellClosed, core.CodeInputClosed, core.CodeTooLarge},
		}, (*core.Service).WriteShell),
		Streamed(Define(Operation{
			Name: "read_shell", Title: "Read a shell's terminal", Noun: shells,
			Description: "Reads what was written to a shell's terminal, from an offset on, also after the shell was closed. Go on at next_offset; with wait_ms it waits for new bytes. With screen it gives what the terminal shows now, as text, for full-screen programs. The output of a command that was run by run_in_shell is in read_output, and here only where it was run with tty.",
			Method:      http.MethodGet, Path: "/v1/shells/{shell_id}/output", Scope: core.ScopeEnvironmentsRead,
			Hints:        Hints{ReadOnly: true, Idempotent: true},
			Success:      done(),
			Errors:       []core.Code{core.CodeNotFound, core.CodeOutputExpired},
			ToolDefaults: map[string]any{"ansi": "strip"},
		}, (*core.Service).ReadShell), (*core.Service).StreamShell),
	)
}

func shellLifeRows() []Operation {
	return []Operation{
		Define(Operation{
			Name: "open_shell", Title: "Open a shell", Noun: shells,
			Description: "Opens a bash that lives on between calls, on a terminal of its own. Kind command takes commands by run_in_shell: use it where a directory, variables or functions must last. Kind terminal is an interactive shell, used by write_shell and read_shell, for full-screen programs and for people. A shell ends with its environment or the service.",
			Method:      http.MethodPost, Path: "/v1/shells", Scope: core.ScopeExec,
			Hints:   Hints{},
			Success: created(func(sh core.Shell) string { return "/v1/shells/" + sh.ID }),
			Errors:  []core.Code{core.CodeNotFound, core.CodeEnvironmentBusy, core.CodeEnvironmentArchived, core.CodeQuotaExceeded, core.CodeIdempotencyMismatch, core.CodeTooLarge, core.CodeDiskFull},
		}, (*core.Service).OpenShell),
		Define(Operation{
			Name: "list_shells", Title: "List shells", Noun: shells,
			Description: "Lists shells, open and closed, newest first. Use it to find a shell whose id you no longer have, or why one was closed.",
			Method:      http.MethodGet, Path: "/v1/shells", Scope: core.ScopeEnvironmentsRead,
			Hints:   Hints{ReadOnly: true, Idempotent: true},
			Success: done(),
			Errors:  []core.Code{core.CodeNotFound},
		}, (*core.Service).ListShells),
		Define(Operation{
			Name: "get_shell", Title: "Look at a shell", Noun: shells,
			Description: "Tells whether a shell is open, what runs in it, whether that waits for input, and in which directory it is; of a closed one, why it was closed.",
			Method:      http.MethodGet, Path: "/v1/shells/{shell_id}", Scope: core.ScopeEnvironmentsRead,
			Hints:   Hints{ReadOnly: true, Idempotent: true},
			Toolset: Management,
			Success: done(),
			Errors:  []core.Code{core.CodeNotFound},
		}, (*core.Service).GetShell),
		Define(Operation{
			Name: "resize_shell", Title: "Resize a shell's terminal", Noun: shells,
			Description: "Gives a shell's terminal another size; programs in it are told by SIGWINCH.",
			Method:      http.MethodPost, Path: "/v1/shells/{shell_id}/resize", Scope: core.ScopeExec,
			Hints:   Hints{Destructive: true, Idempotent: true},
			Toolset: Management,
			Success: done(),
			Errors:  []core.Code{core.CodeNotFound, core.CodeShellClosed},
		}, (*core.Service).ResizeShell),
		Define(Operation{
			Name: "close_shell", Title: "Close a shell", Noun: shells,
			Description: "Ends a shell and kills everything that descends from it, also what was started with nohup, unless keep_background leaves the background alive. It answers with the closed shell, whose output can still be read. One that is closed already is answered as it is.",
			Method:      http.MethodDelete, Path: "/v1/shells/{shell_id}", Scope: core.ScopeExec,
			Hints:   Hints{Destructive: true, Idempotent: true},
			Success: done(),
			Errors:  []core.Code{core.CodeNotFound},
		}, (*core.Service).CloseShell),
	}
}

func attachRow() Operation {
	return DefineAttach(Operation{
		Name: "attach", Title: "Sit before a shell's terminal", Noun: shells,
		Description: "Opens a shell's terminal as a WebSocket, for programs that show it to people. Several may be before one terminal; each reads at its own pace. Binary messages are bytes, both ways. Text messages are JSON. From the client: {\"type\": \"resize\", \"cols\", \"rows\"}. From the service: first hello (offset: where the bytes that follow begin; kind, cols, rows; input: whether you may type, which needs the scope exec); expired (next_offset: the bytes before it were dropped, and it goes on there); refused (code, detail: what was typed or asked for was not done); dropped (bytes: that many of the last ones typed were not read in time); closed (reason, exit_code, signal: the shell is closed); problem (a problem document: why it ends otherwise). The close code is then 1000 for a closed shell, 3000 for an expired token, 1012 where the service stops, 1003 or 1008 for a message that it does not know, 1009 for one above 1 MiB. In silence the service pings. A web page, which cannot send an Authorization header, offers the subprotocols envapi.v1 and envapi.bearer.TOKEN and is answered envapi.v1.",
		Method:      http.MethodGet, Path: "/v1/shells/{shell_id}/attach", Scope: core.ScopeEnvironmentsRead,
		NoTool: "a terminal is a conversation of bytes in both directions; an assistant has write_shell and read_shell, whose answers are whole",
		Errors: []core.Code{core.CodeNotFound},
	}, (*core.Service).Attach)
}
