package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// attacks are what a hostile client does, each in a new environment, which is deleted
// under whatever still goes on in it. An attack fails only where the service does what
// it must not: it gives what is another's, or takes what is wrong for right.
func attacks() []play {
	return slices.Concat([]play{
		{"flood", command("yes flood", 400)},
		{"endless line", command("tr '\\0' x </dev/zero", 400)},
		{"binary flood", command("cat /dev/urandom", 400)},
		{"fork bomb", command(":(){ :|:& };:", 600)},
		{"sleepers", command("for i in $(seq 500); do sleep 600 & done; wait", 600)},
		{"memory", command("tail /dev/zero", 800)},
		{"disk", command("head -c 300M /dev/zero >big; head -c 300M /dev/zero >more", 1000)},
		{"many files", command("mkdir d; cd d; for i in $(seq 30000); do : >$i; done", 1000)},
		{"stubborn", command("trap '' TERM INT HUP QUIT; while :; do sleep 1; done", 200)},
		{"deep tree", command("for i in $(seq 500); do mkdir d && cd d || exit; done", 400)},
		{"races", attackRaces},
		{"strangers", attackStrangers},
		{"listings", attackListings},
		{"abandoned", attackAbandoned},
		{"odd files", attackOddFiles},
		{"terminals", attackTerminals},
	}, wireAttacks)
}

// command is an attack by one command that goes on for so many milliseconds, is looked
// at meanwhile, and is then left alone in half of the cases.
func command(command string, lastsMS int) func(context.Context, *client) error {
	return func(ctx context.Context, c *client) error {
		a, err := c.call(ctx, "exec", c.here(object{"command": command, "wait_ms": lastsMS, "timeout_ms": 60_000}))
		if err != nil {
			return nil //nolint:nilerr // a refusal is noted where it came
		}
		id := text(a, "id")
		_, _ = c.call(ctx, "read_output", object{"command_id": id, "tail_bytes": 1 << 20, "limit_bytes": 1 << 20})
		_, _ = c.call(ctx, "read_output", object{"command_id": id, "offset": c.rand.IntN(1 << 22)})
		_, _ = c.call(ctx, "list_processes", c.here(nil))
		_, _ = c.call(ctx, "get_environment", c.here(nil))
		if c.rand.IntN(2) == 0 {
			_, _ = c.call(ctx, "signal_command", object{"command_id": id, "signal": "KILL"})
		}
		return nil
	}
}

// attackRaces ends a shell, a command and their environment from several sides while
// they are being used.
func attackRaces(ctx context.Context, c *client) error {
	shell, err := c.call(ctx, "open_shell", c.here(nil))
	if err != nil {
		return nil //nolint:nilerr // a refusal is noted where it came
	}
	run, err := c.call(ctx, "exec", c.here(object{"command": "while :; do echo x; done", "wait_ms": 0}))
	if err != nil {
		return nil //nolint:nilerr // likewise
	}
	inShell := object{"shell_id": text(shell, "id"), "command": "sleep 0.05", "queue": true, "wait_ms": 100}
	this := object{"command_id": text(run, "id"), "signal": "KILL"}
	calls := []struct {
		operation string
		input     object
	}{
		{"run_in_shell", inShell},
		{"run_in_shell", inShell},
		{"signal_command", this},
		{"close_shell", object{"shell_id": text(shell, "id")}},
		{"write_shell", object{"shell_id": text(shell, "id"), "keys": []string{"ctrl-c"}, "wait_ms": 100}},
		{"exec", c.here(object{"command": "true", "wait_ms": 100})},
		{"reset_environment", c.here(nil)},
		{"archive_environment", c.here(nil)},
		{"fork_environment", c.here(nil)},
		{"write_file", c.here(object{"path": "x", "content": "x"})},
		{"delete_environment", c.here(nil)},
		{"restore_environment", c.here(nil)},
	}
	c.rand.Shuffle(len(calls), func(a, b int) { calls[a], calls[b] = calls[b], calls[a] })
	var racing sync.WaitGroup
	for _, call := range calls {
		racing.Go(func() { c.aside(ctx, call.operation, call.input) })
	}
	racing.Wait()
	return nil
}

// aside makes a call over REST that may run beside others of the same client.
func (c *client) aside(ctx context.Context, operation string, input object) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	_, err := c.rest(ctx, operation, input)
	if isRefused(err, "internal") {
		err = fmt.Errorf("%s: %w", operation, err)
	}
	c.tally.endured(operation, err)
}

// attackStrangers asks for what is another's, and with tokens that nobody made.
func attackStrangers(ctx context.Context, c *client) error {
	victim := c.crew.victim(c)
	var wrong []error
	for _, call := range []struct {
		operation string
		input     object
	}{
		{"get_environment", object{"environment_id": victim}},
		{"exec", object{"environment_id": victim, "command": "id"}},
		{"read_file", object{"environment_id": victim, "path": "kept"}},
		{"list_files", object{"environment_id": victim}},
		{"list_processes", object{"environment_id": victim}},
		{"open_shell", object{"environment_id": victim}},
		{"delete_environment", object{"environment_id": victim}},
		{"fork_environment", object{"environment_id": victim}},
	} {
		if _, err := c.call(ctx, call.operation, call.input); err == nil {
			wrong = append(wrong, fmt.Errorf("%s did what was asked with another's environment", call.operation))
		}
	}
	return errors.Join(append(wrong, c.forge(ctx))...)
}

// victim is an environment of another client, or one that never was.
func (all *crew) victim(c *client) string {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.victims) == 0 {
		return "env_aaaaaaaaaaaaaaaaaaaaaaaaaa"
	}
	return all.victims[c.rand.IntN(len(all.victims))]
}

// forge comes with tokens that are none.
func (c *client) forge(ctx context.Context) error {
	parts := strings.Split(c.token, ".")
	var wrong []error
	for name, token := range map[string]string{
		"none at all": "", "no token": "x", "another's key": c.service.forger.Master().Raw,
		"without a signature": parts[0] + "." + parts[1] + ".",
		"another's payload":   parts[0] + "." + strings.Split(c.service.forger.Master().Raw, ".")[1] + "." + parts[2],
		"algorithm none":      "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0." + parts[1] + ".",
		"a long one":          strings.Repeat("a", 64<<10),
	} {
		forged := c.door
		forged.token = token
		resp, err := forged.send(ctx, http.MethodGet, "/v1/status", nil, nil)
		if err == nil {
			_ = resp.Body.Close()
			wrong = append(wrong, fmt.Errorf("a token that is none was taken: %s", name))
			continue
		}
		c.tally.endured("token", err)
	}
	return errors.Join(wrong...)
}

// attackListings makes many entries and lists and searches them from several sides.
func attackListings(ctx context.Context, c *client) error {
	if _, err := c.call(ctx, "exec", c.here(object{"command": "mkdir -p a/b; cd a/b; seq 5000 | xargs touch; seq 20000 >big"})); err != nil {
		return nil //nolint:nilerr // a refusal is noted where it came
	}
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			c.aside(ctx, "list_files", c.here(object{"recursive": true, "limit": 1000}))
			c.aside(ctx, "search_files", c.here(object{"pattern": "(x+x+)+y|[0-9]*9$", "limit": 2000, "limit_bytes": 1 << 20}))
		})
	}
	asking.Wait()
	return nil
}

// attackAbandoned begins calls that wait, and goes away.
func attackAbandoned(ctx context.Context, c *client) error {
	a, err := c.call(ctx, "exec", c.here(object{"command": "sleep 600", "wait_ms": 0}))
	if err != nil {
		return nil //nolint:nilerr // a refusal is noted where it came
	}
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() {
			c.aside(ctx, "get_command", object{"command_id": text(a, "id"), "wait_ms": 45_000})
			c.aside(ctx, "exec", c.here(object{"command": "sleep 600"}))
		})
		waiting.Go(func() {
			c.aside(ctx, "read_output", object{"command_id": text(a, "id"), "wait_ms": 45_000})
		})
	}
	waiting.Wait()
	return nil
}

// attackOddFiles asks the files API for what is no file, and for ways out.
func attackOddFiles(ctx context.Context, c *client) error {
	_, err := c.call(ctx, "exec", c.here(object{"command": "mkfifo fifo; ln -s /etc/passwd out; ln -s loop loop; ln -s / root; mkdir shut; chmod 0 shut; head -c 2M /dev/zero >zeros"}))
	if err != nil {
		return nil //nolint:nilerr // a refusal is noted where it came
	}
	var wrong []error
	for _, path := range []string{"fifo", "loop", "out", "root/etc/passwd", "/etc/passwd", "../x", "shut/x", "a\x00b", strings.Repeat("x/", 2000), "zeros/x"} {
		if _, err := c.call(ctx, "read_file", c.here(object{"path": path})); err == nil {
			wrong = append(wrong, fmt.Errorf("read_file gave %.40q", path))
		}
		_, _ = c.call(ctx, "edit_file", c.here(object{"path": path, "edits": []any{object{"old": "a", "new": "b"}}}))
		_, _ = c.call(ctx, "delete_file", c.here(object{"path": path, "recursive": true}))
	}
	_, _ = c.call(ctx, "read_file", c.here(object{"path": "zeros"}))
	_, _ = c.call(ctx, "search_files", c.here(object{"literal": "x"}))
	_, _ = c.call(ctx, "apply_patch", c.here(object{"patch": strings.Repeat("--- a/x\n+++ b/../../x\n@@ -1 +1 @@\n-a\n+b\n", 50)}))
	return errors.Join(wrong...)
}

// attackTerminals opens more shells than it may, sits before one, types without reading
// and goes away.
func attackTerminals(ctx context.Context, c *client) error {
	var last string
	for range 12 {
		if a, err := c.call(ctx, "open_shell", c.here(object{"kind": "terminal"})); err == nil {
			last = text(a, "id")
		}
	}
	if last == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	for range 3 {
		conn, err := c.sit(ctx, last)
		if err != nil {
			c.tally.endured("attach", err)
			continue
		}
		defer func() { _ = conn.CloseNow() }()
		for range 8 {
			c.tally.endured("typing", conn.Write(ctx, websocket.MessageBinary, []byte(strings.Repeat("echo x; ", 4096)+"\n")))
		}
	}
	return nil
}
