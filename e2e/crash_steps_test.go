package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// runsFile is where commands note that they ran: a line each, written at one time.
const runsFile = "runs"

// most is how many there are of each in the profile or the environment of a witness.
const (
	mostEnvironments = 3
	mostRunning      = 3
	mostShells       = 3
	mostCommands     = 25
)

// next chooses what to do.
func (w *witness) next() *act {
	for {
		var s *act
		d := w.envs[w.oneOf(keys(w.envs, func(*dwelling) bool { return true }))]
		if d == nil {
			return w.create()
		}
		switch n := w.rng.IntN(100); {
		case n < 50:
			s = w.changeFiles(d)
		case n < 56:
			s = w.read(d)
		case n < 70:
			s = w.changeEnvironment(d)
		case w.files:
		case n < 82:
			s = w.exec(d)
		case n < 94:
			s = w.useShell(d)
		default:
			s = w.useCommand(d)
		}
		if s != nil {
			return s
		}
	}
}

// changeEnvironment is a step that makes, changes or deletes a whole one.
func (w *witness) changeEnvironment(d *dwelling) *act {
	s := &act{in: object{"environment_id": d.id}, on: d}
	switch n := w.rng.IntN(12); {
	case n < 2:
		if len(w.envs) < mostEnvironments {
			return w.create()
		}
		s.operation, s.ends = "delete_environment", "environment_deleted"
	case n < 4:
		if len(w.envs) >= mostEnvironments || d.state != "active" {
			return nil
		}
		return w.fork(d)
	case n < 5:
		s.operation, s.ends = "reset_environment", "environment_reset"
		s.to = d.but(func(d *dwelling) { d.state, d.tree = "active", tree{} })
	case n < 8:
		s.operation, s.ends = "archive_environment", "environment_archived"
		s.to = d.but(func(d *dwelling) { d.state = "archived" })
	case n < 10:
		s.operation = "restore_environment"
		s.to = d.but(func(d *dwelling) { d.state = "active" })
	default:
		name := w.tag()
		s.operation, s.in["name"], s.in["labels"] = "update_environment", name, object{"l": name}
		s.to = d.but(func(d *dwelling) { d.name, d.label = name, name })
	}
	return s
}

// create makes an environment.
func (w *witness) create() *act {
	return w.makes(&dwelling{state: "active", tree: tree{}}, "create_environment", object{})
}

// fork makes one of another.
func (w *witness) fork(d *dwelling) *act {
	return w.makes(d, "fork_environment", object{"environment_id": d.id})
}

// makes is a step that makes an environment like another one.
func (w *witness) makes(like *dwelling, operation string, in object) *act {
	name := w.tag()
	in["name"], in["labels"], in["idempotency_key"] = name, object{"l": name}, name
	made := like.but(func(d *dwelling) { d.name, d.label = name, name })
	s := &act{operation: operation, in: in}
	s.noted = func(answer object) error {
		made.id = text(answer, "id")
		seen := dwellingOf(answer)
		seen.tree = made.tree
		if why := made.differs(&seen); why != "" {
			return errors.New(why)
		}
		w.envs[made.id] = made
		return nil
	}
	s.settle = func(ctx context.Context) error {
		found, err := w.list(ctx, "list_environments", object{"name": name})
		if err != nil || len(found) > 1 {
			return fmt.Errorf("there are %d environments of one call: %w", len(found), err)
		}
		if like.id != "" { // the fork's source
			if err := w.adopt(ctx, like.id, like.variants()...); err != nil {
				return err
			}
		}
		if len(found) == 1 {
			id := text(found[0], "id")
			may := []*dwelling{made.but(func(d *dwelling) { d.id = id })}
			if w.allowed != nil {
				may = append(may, nil) // it failed, and is taken back
			}
			if err := w.adopt(ctx, id, may...); err != nil {
				return err
			}
			if w.envs[id] == nil {
				found = nil
			}
		}
		return w.again(ctx, s, found)
	}
	return s
}

// again makes a call again whose key says that it must make nothing twice.
func (w *witness) again(ctx context.Context, s *act, found []object) error {
	answer, err := w.send(ctx, s)
	var p *problem
	if w.allowed != nil && errors.As(err, &p) {
		if ok, _ := w.allowed(p.Code); ok {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("again: %w", err)
	}
	if len(found) == 0 {
		return w.note(s, answer)
	}
	if text(answer, "id") != text(found[0], "id") {
		return fmt.Errorf("the same key gave %s, and then %s", text(found[0], "id"), text(answer, "id"))
	}
	return nil
}

// list gives all items of a list.
func (w *witness) list(ctx context.Context, operation string, in object) ([]object, error) {
	var all []object
	in = maps.Clone(in)
	in["limit"] = 200
	for {
		answer, err := w.rest.call(ctx, operation, in)
		if err != nil {
			return nil, err
		}
		items, _ := answer["items"].([]any)
		for _, item := range items {
			all = append(all, item.(object))
		}
		if text(answer, "next_cursor") == "" {
			return all, nil
		}
		in["cursor"] = answer["next_cursor"]
	}
}

// running are the commands of an environment that run, shells' excluded.
func (w *witness) running(env string) []string {
	return keys(w.commands, func(r *ran) bool { return r.env == env && r.status == "running" && r.shell == "" })
}

// exec runs a command: one that ends, or one that never does.
func (w *witness) exec(d *dwelling) *act {
	tag := w.tag()
	if len(keys(w.commands, func(r *ran) bool { return r.env == d.id })) > mostCommands {
		return nil
	}
	if w.rng.IntN(4) == 0 {
		if len(w.running(d.id)) >= mostRunning {
			return nil
		}
		r := &ran{env: d.id, status: "running", exit: -1}
		in := object{"command": "echo began " + tag + "; read -r l; echo $l; exec sleep " + w.mark, "wait_ms": 0, "stdin_open": true}
		return w.runs(d, tag, r, "exec", in)
	}
	r, script := w.short(d, tag)
	return w.runs(d, tag, r, "exec", object{"command": script, "wait_ms": 45000})
}

// short is a command that ends, and what must be known of it then.
func (w *witness) short(d *dwelling, tag string) (*ran, string) {
	n, exit := 1+w.rng.IntN(3000), w.rng.IntN(4)
	r := &ran{env: d.id, status: "exited", exit: exit, out: string(numbers(n)), whole: true}
	return r, fmt.Sprintf("echo %s >> %s; seq %d; (exit %d)", tag, runsFile, n, exit)
}

// runs is a step that runs a command, in whatever way.
func (w *witness) runs(d *dwelling, tag string, r *ran, operation string, in object) *act {
	if r.shell == "" {
		in["environment_id"] = d.id
	}
	in["idempotency_key"] = tag
	s := &act{operation: operation, in: in, on: d}
	s.to = w.afterRun(d, r, tag)
	s.noted = func(answer object) error {
		r.id = text(answer, "id")
		w.commands[r.id] = r
		if o := w.shells[r.shell]; o != nil && r.status == "running" {
			o.busy = r
		}
		return w.sameCommand(r, answer)
	}
	s.settle = func(ctx context.Context) error { return w.settleRun(ctx, s, r, tag) }
	return s
}

// sameCommand compares what is said of a command with what must be.
func (w *witness) sameCommand(r *ran, answer object) error {
	exit := "-1"
	if answer["exit_code"] != nil {
		exit = fmt.Sprint(answer["exit_code"])
	}
	if text(answer, "status") != r.status || text(answer, "reason") != r.reason || exit != fmt.Sprint(r.exit) {
		return fmt.Errorf("command %s is %s %s %s, not %s %d %s", r.id, text(answer, "status"), exit, text(answer, "reason"), r.status, r.exit, r.reason)
	}
	return nil
}

// settleRun finds out what became of a command that nobody was told of: there is a
// record, and it ended, or is lost; or there is none, and it never ran.
func (w *witness) settleRun(ctx context.Context, s *act, r *ran, tag string) error {
	found, err := w.list(ctx, "list_commands", object{"environment_id": r.env})
	if err != nil {
		return err
	}
	mine := slices.DeleteFunc(found, func(c object) bool { return !strings.Contains(text(c, "command"), tag) })
	may := s.on.variants()
	switch len(mine) {
	case 0:
	case 1:
		if may, err = w.foundRun(ctx, s, r, mine[0]); err != nil {
			return err
		}
	default:
		return fmt.Errorf("there are %d commands of one call", len(mine))
	}
	if err := w.adopt(ctx, s.on.id, may...); err != nil {
		return err
	}
	if len(mine) == 0 && r.shell != "" {
		return nil // its shell is gone, and the call would only say so
	}
	s.on = w.envs[r.env]
	if s.to = s.on; len(mine) == 0 {
		s.to = w.afterRun(s.on, r, tag)
	}
	return w.again(ctx, s, mine)
}

// afterRun is an environment in which a command has run.
func (w *witness) afterRun(d *dwelling, r *ran, tag string) *dwelling {
	return d.but(func(d *dwelling) {
		d.state = "active"
		if r.status == "exited" {
			d.tree[runsFile] = node{'f', 0o644, d.tree[runsFile].data + tag + "\n"}
		}
	})
}

// foundRun notes what is said of a command that nobody was told of, and gives what its
// environment may be then.
func (w *witness) foundRun(ctx context.Context, s *act, r *ran, c object) (may []*dwelling, err error) {
	r.id = text(c, "id")
	w.commands[r.id] = r
	if w.allowed != nil && r.status == "exited" { // it may run on
		if c, err = w.rest.call(ctx, "get_command", object{"command_id": r.id, "wait_ms": 45000}); err != nil {
			return nil, err
		}
	}
	status, reason := text(c, "status"), text(c, "reason")
	if status == r.status {
		return []*dwelling{s.to}, w.sameCommand(r, c)
	}
	if w.allowed == nil && (status != "lost" || reason != "service_stopped") {
		return nil, fmt.Errorf("the command that was under way is %v", c)
	}
	// The program itself may have been ended between making the file and writing to it.
	empty := s.on.but(func(d *dwelling) {
		d.state = "active"
		if d.tree[runsFile].data == "" && r.status == "exited" {
			d.tree[runsFile] = node{'f', 0o644, ""}
		}
	})
	may = append(s.on.variants(), s.to, empty)
	r.status, r.reason, r.exit, r.out, r.whole = status, reason, -1, "", false
	return may, w.sameCommand(r, c)
}
