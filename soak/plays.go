package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// plays are what a client does that uses the service as it is meant. Together they
// drive every operation.
func plays() []play {
	return slices.Concat([]play{
		{"status", playStatus},
		{"life", playLife},
		{"exec", playExec},
		{"exec again", playExec}, // most calls are of this kind
		{"loud", playLoud},
		{"input", playInput},
		{"ends", playEnds},
		{"processes", playProcesses},
		{"archive", playArchive},
	}, shellPlays, filePlays)
}

// want says that something is not as it must be, nil where it is.
func want(what, got, expected string) error {
	if got != expected {
		return fmt.Errorf("%s is %.200q, not %.200q", what, got, expected)
	}
	return nil
}

// refused says that an error is not the refusal that it must be.
func refused(err error, code string) error {
	if isRefused(err, code) {
		return nil
	}
	return fmt.Errorf("want a refusal %s, got %v", code, err) //nolint:errorlint // err may be nil
}

// nonce is a text that no other call has.
func (c *client) nonce() string { return strconv.FormatUint(c.rand.Uint64(), 36) }

func playStatus(ctx context.Context, c *client) error {
	a, err := c.call(ctx, "get_status", object{})
	return errors.Join(err, want("account", text(a, "account"), c.account))
}

// playLife makes an environment, with a key twice, changes and forks it, and removes both.
func playLife(ctx context.Context, c *client) error {
	label := c.nonce()
	input := object{"name": "life", "labels": object{"life": label}, "idempotency_key": c.nonce()}
	made, err := c.call(ctx, "create_environment", input)
	if err != nil {
		return err
	}
	id := text(made, "id")
	again, err := c.call(ctx, "create_environment", input)
	if err := errors.Join(err, want("id of the second call with one key", text(again, "id"), id)); err != nil {
		return err
	}
	this := object{"environment_id": id}
	page, err := c.call(ctx, "list_environments", object{"label": "life=" + label})
	if err := errors.Join(err, want("environments of this label", strconv.Itoa(len(items(page))), "1")); err != nil {
		return err
	}
	if _, err := c.call(ctx, "update_environment", object{"environment_id": id, "name": "renamed"}); err != nil {
		return err
	}
	renamed, err := c.call(ctx, "get_environment", this)
	if err := errors.Join(err, want("name", text(renamed, "name"), "renamed")); err != nil {
		return err
	}
	if _, err := c.run(ctx, id, "echo "+label+" > kept"); err != nil {
		return err
	}
	if err := c.fork(ctx, id, label+"\n"); err != nil {
		return err
	}
	if _, err = c.call(ctx, "reset_environment", this); err != nil {
		return err
	}
	if out, err := c.run(ctx, id, "ls -A"); err != nil || out != "" {
		return errors.Join(err, want("what is there after a reset", out, ""))
	}
	if _, err := c.call(ctx, "delete_environment", this); err != nil {
		return err
	}
	_, err = c.call(ctx, "get_environment", this)
	return refused(err, "not_found")
}

// fork makes a copy of an environment, sees that its file kept is there, and removes it.
func (c *client) fork(ctx context.Context, id, kept string) error {
	fork, err := c.call(ctx, "fork_environment", object{"environment_id": id, "name": "fork"})
	if err != nil {
		return err
	}
	copied := text(fork, "id")
	out, err := c.run(ctx, copied, "cat kept")
	_, gone := c.call(ctx, "delete_environment", object{"environment_id": copied})
	return errors.Join(err, want("the fork's file", out, kept), gone)
}

// run runs a command that must exit with 0 and gives its output.
func (c *client) run(ctx context.Context, environment, command string) (string, error) {
	a, err := c.call(ctx, "exec", object{"environment_id": environment, "command": command})
	if err != nil {
		return "", err
	}
	if a, err = c.end(ctx, a); err != nil {
		return "", err
	}
	if text(a, "status") != "exited" || text(a, "exit_code") != "0" {
		return "", fmt.Errorf("%.80q ended as %s %s %s: %.200s", command, text(a, "status"), text(a, "exit_code"), text(a, "reason"), text(a, "stderr", "text"))
	}
	return text(a, "stdout", "text"), nil
}

// end waits for a command's end, for as long as a call may take.
func (c *client) end(ctx context.Context, command object) (object, error) {
	for deadline := time.Now().Add(callWithin); text(command, "status") == "running"; {
		if time.Now().After(deadline) {
			return command, fmt.Errorf("%s still runs", text(command, "id"))
		}
		next, err := c.call(ctx, "get_command", object{"command_id": text(command, "id"), "wait_ms": 10_000})
		if err != nil {
			return command, err
		}
		command = next
	}
	return command, nil
}

func playExec(ctx context.Context, c *client) error {
	nonce := c.nonce()
	a, err := c.call(ctx, "exec", c.here(object{"command": "echo " + nonce + "; echo e-" + nonce + " >&2; exit 3"}))
	if err != nil {
		return err
	}
	if a, err = c.end(ctx, a); err != nil {
		return err
	}
	if err := errors.Join(
		want("status", text(a, "status"), "exited"), want("exit_code", text(a, "exit_code"), "3"),
		want("stdout", text(a, "stdout", "text"), nonce+"\n"), want("stderr", text(a, "stderr", "text"), "e-"+nonce+"\n"),
	); err != nil {
		return err
	}
	id := text(a, "id")
	out, err := c.call(ctx, "read_output", object{"command_id": id, "stream": "stdout", "offset": 2})
	if err := errors.Join(err, want("output from 2 on", text(out, "data"), nonce[2:]+"\n"), want("eof", text(out, "eof"), "true")); err != nil {
		return err
	}
	page, err := c.call(ctx, "list_commands", c.here(object{"limit": 1}))
	if err != nil || len(items(page)) != 1 {
		return errors.Join(err, errors.New("the list of commands is empty"))
	}
	return want("the newest command", text(items(page)[0], "id"), id)
}

// playLoud reads a long output to its end, some of it while it is made.
func playLoud(ctx context.Context, c *client) error {
	a, err := c.call(ctx, "exec", c.here(object{"command": "seq 1 60000", "wait_ms": 0}))
	if err != nil {
		return err
	}
	var all strings.Builder
	for deadline := time.Now().Add(callWithin); ; {
		part, err := c.call(ctx, "read_output", object{
			"command_id": text(a, "id"), "stream": "stdout", "offset": all.Len(), "limit_bytes": 1 << 18, "wait_ms": 5000,
		})
		if err != nil {
			return err
		}
		all.WriteString(text(part, "data"))
		if text(part, "eof") == "true" {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no end of the output after %d bytes", all.Len())
		}
	}
	const long = 348_894 // seq 1 60000 | wc -c
	return errors.Join(want("length", strconv.Itoa(all.Len()), strconv.Itoa(long)), want("end", all.String()[all.Len()-6:], "60000\n"))
}

func playInput(ctx context.Context, c *client) error {
	nonce := c.nonce()
	a, err := c.call(ctx, "exec", c.here(object{"command": "read -r line; echo \"got $line\"", "stdin_open": true, "wait_ms": 0}))
	if err != nil {
		return err
	}
	if _, err := c.call(ctx, "write_input", object{"command_id": text(a, "id"), "data": nonce + "\n"}); err != nil {
		return err
	}
	a, err = c.end(ctx, a)
	return errors.Join(err, want("stdout", text(a, "stdout", "text"), "got "+nonce+"\n"))
}

// playEnds ends a command by a signal, and another by its time.
func playEnds(ctx context.Context, c *client) error {
	a, err := c.call(ctx, "exec", c.here(object{"command": "sleep 1000 & wait", "wait_ms": 0}))
	if err != nil {
		return err
	}
	a, err = c.call(ctx, "signal_command", object{"command_id": text(a, "id"), "signal": "KILL"})
	if err := errors.Join(err, want("status", text(a, "status"), "killed"), want("reason", text(a, "reason"), "signal")); err != nil {
		return err
	}
	if a, err = c.call(ctx, "exec", c.here(object{"command": "sleep 1000", "timeout_ms": 100})); err != nil {
		return err
	}
	a, err = c.end(ctx, a)
	return errors.Join(err, want("status", text(a, "status"), "timed_out"))
}

// playProcesses finds what a command left behind, and ends it.
func playProcesses(ctx context.Context, c *client) error {
	seconds := 1000 + c.rand.IntN(1_000_000)
	name := fmt.Sprintf("sleep %d", seconds)
	if _, err := c.run(ctx, c.home, "nohup "+name+" >/dev/null 2>&1 &"); err != nil {
		return err
	}
	var pid any
	for deadline := time.Now().Add(callWithin); pid == nil; { // it is a bash at first
		page, err := c.call(ctx, "list_processes", c.here(nil))
		if err != nil {
			return err
		}
		for _, p := range items(page) {
			if text(p, "command") == name {
				pid = p["pid"]
			}
		}
		if pid == nil && time.Now().After(deadline) {
			return fmt.Errorf("%s is not listed", name)
		}
	}
	this := c.here(object{"pid": pid, "wait_ms": 1})
	a, err := c.call(ctx, "wait_process", this)
	if err := errors.Join(err, want("ended", text(a, "ended"), "false")); err != nil {
		return err
	}
	if _, err := c.call(ctx, "signal_process", c.here(object{"pid": pid, "signal": "KILL"})); err != nil {
		return err
	}
	this["wait_ms"] = 20_000
	if a, err = c.call(ctx, "wait_process", this); isRefused(err, "not_found") {
		return nil // it had been reaped
	}
	return errors.Join(err, want("ended", text(a, "ended"), "true"))
}

// playArchive puts the environment away, and has it back by being used.
func playArchive(ctx context.Context, c *client) error {
	nonce := c.nonce()
	if _, err := c.run(ctx, c.home, "mkdir -p tree/of && echo "+nonce+" > tree/of/kept && chmod 700 tree && ln -sf tree/of/kept link"); err != nil {
		return err
	}
	a, err := c.call(ctx, "archive_environment", c.here(nil))
	if err := errors.Join(err, want("state", text(a, "state"), "archived")); err != nil {
		return err
	}
	const restoring = "restore_environment"
	driven := c.tally.succeeded(kind{"rest", restoring}) && c.tally.succeeded(kind{"mcp", restoring})
	if !driven || c.rand.IntN(2) == 0 {
		a, err = c.call(ctx, restoring, c.here(nil))
		if err := errors.Join(err, want("state", text(a, "state"), "active")); err != nil {
			return err
		}
	}
	out, err := c.run(ctx, c.home, "cat link; stat -c %a tree")
	return errors.Join(err, want("what came back", out, nonce+"\n700\n"))
}
