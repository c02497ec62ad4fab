package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// useCommand does something with a command that runs.
func (w *witness) useCommand(d *dwelling) *act {
	r := w.commands[w.oneOf(w.running(d.id))]
	if r == nil || d.state != "active" {
		return nil
	}
	ref := object{"command_id": r.id}
	switch w.rng.IntN(3) {
	case 0:
		s := &act{operation: "signal_command", in: ref}
		ref["signal"] = "KILL"
		s.noted = func(answer object) error {
			// It is answered as it is where its end cannot be recorded in time.
			recorded := !w.failing || text(answer, "status") != "running"
			r.kill("signal", recorded)
			if !recorded || len(r.may) > 0 {
				return nil
			}
			return w.sameCommand(r, answer)
		}
		s.unsure = func() { r.kill("signal", false) }
		return s
	case 1:
		ref["data"] = w.tag() + "\n"
		return &act{operation: "write_input", in: ref}
	}
	s := &act{operation: "read_output", in: ref}
	ref["stream"] = "stdout"
	s.noted = func(answer object) error { return grows(&r.out, text(answer, "data")) }
	return s
}

// grows notes what a stream holds, which begins with what it held.
func grows(out *string, now string) error {
	if !strings.HasPrefix(now, *out) {
		return fmt.Errorf("the output was %.200q, and is %.200q", *out, now)
	}
	*out = now
	return nil
}

// useShell opens, uses or closes a shell.
func (w *witness) useShell(d *dwelling) *act {
	open := keys(w.shells, func(o *opened) bool { return o.env == d.id && o.state == "open" })
	all := keys(w.shells, func(o *opened) bool { return o.env == d.id })
	o := w.shells[w.oneOf(open)]
	if o == nil || len(open) < mostShells && len(all) < mostCommands && w.rng.IntN(5) == 0 {
		return w.open(d)
	}
	ref := object{"shell_id": o.id}
	switch n := w.rng.IntN(8); {
	case n == 0:
		s := &act{operation: "close_shell", in: ref}
		s.noted = func(answer object) error {
			w.closed(o, true)
			if len(o.may) > 0 {
				return nil
			}
			return o.same(answer)
		}
		s.unsure = func() { w.closed(o, false) }
		return s
	case o.terminal && n < 4:
		ref["data"] = "echo " + w.tag() + "\n"
		return &act{operation: "write_shell", in: ref}
	case o.terminal:
		s := &act{operation: "read_shell", in: ref}
		ref["limit_bytes"], ref["ansi"] = 1<<20, "keep"
		s.noted = func(answer object) error {
			if text(answer, "encoding") != "utf-8" {
				return nil
			}
			return grows(&o.out, text(answer, "data"))
		}
		return s
	case o.busy != nil:
		return nil
	}
	return w.runInShell(d, o)
}

func (w *witness) runInShell(d *dwelling, o *opened) *act {
	tag := w.tag()
	if len(keys(w.commands, func(r *ran) bool { return r.env == d.id })) > mostCommands {
		return nil
	}
	if w.rng.IntN(6) == 0 {
		r := &ran{env: d.id, shell: o.id, status: "running", exit: -1}
		in := object{"shell_id": o.id, "command": "echo began " + tag + "; sleep " + w.mark, "wait_ms": 0}
		return w.runs(d, tag, r, "run_in_shell", in)
	}
	r, script := w.short(d, tag)
	r.shell = o.id
	return w.runs(d, tag, r, "run_in_shell", object{"shell_id": o.id, "command": script, "wait_ms": 45000})
}

// closed notes that a shell is closed by its caller, and what ran in it killed.
func (w *witness) closed(o *opened, sure bool) {
	if o.busy != nil {
		o.busy.kill("shell_closed", sure)
	}
	o.shut("closed", sure)
}

// same compares what is said of a shell with what must be.
func (o *opened) same(answer object) error {
	if text(answer, "state") != o.state || text(answer, "close_reason") != o.reason {
		return fmt.Errorf("shell %s is %s %s, not %s %s", o.id, text(answer, "state"), text(answer, "close_reason"), o.state, o.reason)
	}
	return nil
}

// open opens a shell.
func (w *witness) open(d *dwelling) *act {
	name := w.tag()
	o := &opened{env: d.id, terminal: w.rng.IntN(3) == 0, state: "open"}
	in := object{"environment_id": d.id, "name": name, "idempotency_key": name}
	if o.terminal {
		in["kind"], in["env"] = "terminal", object{"HISTFILE": ""} // else bash leaves a file at its end
	}
	s := &act{operation: "open_shell", in: in, on: d, to: d.but(func(d *dwelling) { d.state = "active" })}
	s.noted = func(answer object) error {
		o.id = text(answer, "id")
		w.shells[o.id] = o
		return o.same(answer)
	}
	s.settle = func(ctx context.Context) error {
		all, err := w.list(ctx, "list_shells", object{"environment_id": d.id})
		if err != nil {
			return err
		}
		var found []object
		for _, one := range all {
			if text(one, "name") == name {
				found = append(found, one)
			}
		}
		if len(found) > 1 {
			return errors.New("there are two shells of one call")
		}
		if err := w.adopt(ctx, d.id, d.variants()...); err != nil {
			return err
		}
		if len(found) == 1 {
			o.state, o.reason = "closed", "service_restarted"
			if err := s.noted(found[0]); err != nil {
				return err
			}
		}
		s.on = nil
		if err := w.again(ctx, s, found); err != nil {
			return err
		}
		seen, err := w.look(ctx, d.id) // the call again restored it, where it opened one
		if err == nil && seen != nil {
			w.envs[d.id] = w.envs[d.id].but(func(d *dwelling) { d.state = seen.state })
		}
		return err
	}
	return s
}
