package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// settled finds out what became of the call that was under way when the service was
// killed.
func (w *witness) settled(ctx context.Context) error {
	s, why := w.doubt, w.why
	if s == nil {
		return nil
	}
	w.doubt, w.why = nil, nil
	if err := w.resolve(ctx, s); err != nil {
		return fmt.Errorf("%s, which ended with %w, was under way: %w", s, why, err)
	}
	return nil
}

// afterAStart notes what the end of a service does to commands and shells: nothing to
// those that had ended.
func (w *witness) afterAStart(ctx context.Context) error {
	if w.doubt != nil {
		w.unsure(w.doubt)
	}
	for _, r := range w.commands {
		if r.status != "running" {
			continue
		}
		answer, err := w.rest.call(ctx, "get_command", object{"command_id": r.id, "wait_ms": 0})
		if isCode(err, "not_found") {
			continue // went with its environment, or is missed later
		}
		if err != nil {
			return err
		}
		killed := text(answer, "status") == "killed" && slices.Contains(r.may, text(answer, "reason"))
		if r.may = nil; killed {
			r.kill(text(answer, "reason"), true)
		} else {
			r.status, r.reason = "lost", "service_stopped"
		}
	}
	for _, o := range w.shells {
		if o.state != "open" {
			continue
		}
		answer, err := w.rest.call(ctx, "get_shell", object{"shell_id": o.id})
		if isCode(err, "not_found") {
			continue
		}
		if err != nil {
			return err
		}
		reason := "service_restarted"
		if slices.Contains(o.may, text(answer, "close_reason")) {
			reason = text(answer, "close_reason")
		}
		o.may = nil
		o.shut(reason, true)
	}
	return nil
}

// check compares all that is there with the ledger.
func (w *witness) check(ctx context.Context) error {
	return errors.Join(w.checkEnvironments(ctx), w.checkCommands(ctx), w.checkShells(ctx))
}

func (w *witness) checkEnvironments(ctx context.Context) error {
	all, err := w.list(ctx, "list_environments", object{})
	for _, env := range all {
		if w.envs[text(env, "id")] == nil {
			err = errors.Join(err, fmt.Errorf("environment %v is too many", env))
		}
	}
	for id, d := range w.envs {
		seen, wrong := w.look(ctx, id)
		if wrong == nil {
			if why := d.differs(seen); why != "" {
				wrong = errors.New(why)
			} else if seen.state == "active" {
				wrong = w.checkTags(ctx, d)
			}
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("environment %s: %w", id, wrong))
		}
	}
	for _, id := range w.gone {
		if _, gone := w.rest.call(ctx, "get_environment", object{"environment_id": id}); !isCode(gone, "not_found") {
			err = errors.Join(err, fmt.Errorf("environment %s was deleted, and now: %w", id, gone))
		}
	}
	return err
}

// checkTags asks for the ETags of some files.
func (w *witness) checkTags(ctx context.Context, d *dwelling) error {
	for range 2 {
		p := w.oneOf(d.tree.files(1 << 30))
		if p == "" {
			return nil
		}
		answer, err := w.rest.call(ctx, "stat_file", object{"environment_id": d.id, "path": p})
		if err == nil {
			err = tagged(d.tree[p].data)(answer)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

func (w *witness) checkCommands(ctx context.Context) error {
	var wrong error
	for id := range w.envs {
		all, err := w.list(ctx, "list_commands", object{"environment_id": id})
		wrong = errors.Join(wrong, err)
		for _, c := range all {
			if w.commands[text(c, "id")] == nil {
				wrong = errors.Join(wrong, fmt.Errorf("command %v is too many", c))
			}
		}
	}
	for id, r := range w.commands {
		if err := w.checkCommand(ctx, r); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("command %s: %w", id, err))
		}
	}
	return wrong
}

func (w *witness) checkCommand(ctx context.Context, r *ran) error {
	answer, err := w.rest.call(ctx, "get_command", object{"command_id": r.id, "wait_ms": 0})
	if err == nil {
		err = w.sameCommand(r, answer)
	}
	if err != nil {
		return err
	}
	answer, err = w.rest.call(ctx, "read_output", object{"command_id": r.id, "stream": "stdout", "limit_bytes": 1 << 20})
	if err != nil {
		return err
	}
	before := r.out
	if err := grows(&r.out, text(answer, "data")); err != nil {
		return err
	}
	if r.whole && r.out != before || answer["eof"] != (r.status != "running") {
		return fmt.Errorf("it had written %d bytes, and now %d, at the end: %v", len(before), len(r.out), answer["eof"])
	}
	r.whole = r.status != "running"
	return nil
}

func (w *witness) checkShells(ctx context.Context) error {
	var wrong error
	for id := range w.envs {
		all, err := w.list(ctx, "list_shells", object{"environment_id": id})
		wrong = errors.Join(wrong, err)
		for _, one := range all {
			if w.shells[text(one, "id")] == nil {
				wrong = errors.Join(wrong, fmt.Errorf("shell %v is too many", one))
			}
		}
	}
	for _, o := range w.shells {
		answer, err := w.rest.call(ctx, "get_shell", object{"shell_id": o.id})
		if err == nil {
			err = o.same(answer)
		}
		wrong = errors.Join(wrong, err)
		if o.out == "" || err != nil {
			continue
		}
		answer, err = w.rest.call(ctx, "read_shell", object{"shell_id": o.id, "limit_bytes": 1 << 20})
		if err == nil && !strings.HasPrefix(streamOf(answer), o.out) {
			err = fmt.Errorf("terminal %s had %.300q, and now %.300q", o.id, o.out, streamOf(answer))
		}
		wrong = errors.Join(wrong, err)
	}
	return wrong
}

// streamOf is the bytes of a page of output.
func streamOf(answer object) string {
	if text(answer, "encoding") == "utf-8" {
		return text(answer, "data")
	}
	data, _ := base64.StdEncoding.DecodeString(text(answer, "data")) // none where it is none
	return string(data)
}
