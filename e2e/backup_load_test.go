package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// fact is something that was answered, and how to see that it is still so.
type fact struct {
	what  string
	still func(r rest) error
}

// diary is what was answered so far.
type diary struct {
	mu    sync.Mutex
	facts []fact
}

func (d *diary) note(what string, still func(r rest) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.facts = append(d.facts, fact{what, still})
}

// soFar gives what was answered until now.
func (d *diary) soFar() []fact {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.facts[:len(d.facts):len(d.facts)]
}

// want is an answer of which one value must be something.
func (r rest) gives(operation string, in object, name, want string) error {
	answer, err := r.call(context.Background(), operation, in)
	if err != nil {
		return err
	}
	if got := fmt.Sprint(answer[name]); got != want {
		return fmt.Errorf("%s %v: %s is %q and was %q", operation, brief(in), name, got, want)
	}
	return nil
}

// says runs a script that must print something.
func (p place) says(script, want string) error {
	answer, err := p.call(context.Background(), "exec", p.in(object{"command": script, "wait_ms": 30000}))
	if err != nil {
		return err
	}
	out, _ := answer["stdout"].(object)
	if text(out, "text") != want {
		return fmt.Errorf("%q says %q and not %q", script, text(out, "text"), want)
	}
	return nil
}

// laborers are what works on a service while it is backed up, each in environments of
// its own, over and over. Each gives an error, or notes what it was answered.
func laborers(t *testing.T, s *service, d *diary) []func(i int) error {
	t.Helper()
	files, commands, sleeper, resetter, typist := s.place(t), s.place(t), s.place(t), s.place(t), s.place(t)
	shell := typist.open(t, object{})
	return []func(i int) error{
		func(i int) error { return files.writesAFile(d, i) },
		func(i int) error { return commands.runs(d, i) },
		func(i int) error { return sleeper.sleepsAndWakes(d, i) },
		func(i int) error { return resetter.resets(i) },
		func(i int) error { return shell.prints(d, i) },
		func(i int) error { return s.comesAndGoes(d, i) },
	}
}

func (p place) writesAFile(d *diary, i int) error {
	in := p.in(object{"path": fmt.Sprintf("d%d/f%d", i%7, i), "content": fmt.Sprintf("content %d\n", i), "parents": true})
	answer, err := p.call(context.Background(), "write_file", in)
	if err != nil {
		return err
	}
	tag := text(answer, "etag")
	d.note("a file", func(r rest) error {
		ref := object{"environment_id": p.id, "path": in["path"]}
		return errors.Join(r.gives("stat_file", ref, "etag", tag), r.gives("read_file", ref, "text", fmt.Sprintf("content %d\n", i)))
	})
	return nil
}

func (p place) runs(d *diary, i int) error {
	in := p.in(object{"command": fmt.Sprintf("echo out %d; exit %d", i, i%3), "idempotency_key": fmt.Sprint("key ", i), "wait_ms": 30000})
	answer, err := p.call(context.Background(), "exec", in)
	if err != nil {
		return err
	}
	id := text(answer, "id")
	d.note("a result", func(r rest) error {
		return errors.Join(
			r.gives("get_command", object{"command_id": id}, "exit_code", fmt.Sprint(i%3)),
			r.gives("read_output", object{"command_id": id}, "data", fmt.Sprintf("out %d\n", i)),
			r.gives("exec", in, "id", id), // by its key
		)
	})
	return nil
}

func (p place) sleepsAndWakes(d *diary, i int) error {
	if err := p.says(fmt.Sprintf("echo %d >> grows; head -c 300000 /dev/urandom > noise; tail -n 1 grows", i), fmt.Sprintf("%d\n", i)); err != nil {
		return err
	}
	d.note("a line of what is archived and restored", func(r rest) error {
		return place{r, p.id}.says(fmt.Sprintf("grep -x %d grows", i), fmt.Sprintf("%d\n", i))
	})
	_, err := p.call(context.Background(), "archive_environment", p.in(nil))
	return err
}

func (p place) resets(int) error {
	if _, err := p.call(context.Background(), "reset_environment", p.in(nil)); err != nil {
		return err
	}
	return p.says("ls -A; mkdir -p a/b/c; echo half > a/b/c/half; echo of > a/b/c/of; rm -r a; echo new", "new\n")
}

func (s shell) prints(d *diary, i int) error {
	c, err := s.tryRun(fmt.Sprintf("echo line %d; head -c 500000 /dev/zero | tr '\\0' x >&2", i), object{"wait_ms": 30000})
	if err != nil {
		return err
	}
	d.note("a command of a shell", func(r rest) error {
		return errors.Join(
			r.gives("get_command", object{"command_id": c.ID}, "status", "exited"),
			r.gives("read_output", object{"command_id": c.ID, "stream": "stdout"}, "data", fmt.Sprintf("line %d\n", i)),
			r.gives("read_output", object{"command_id": c.ID, "stream": "stderr", "tail_bytes": 1}, "total_bytes", "500000"),
		)
	})
	return nil
}

func (s *service) comesAndGoes(d *diary, i int) error {
	key := object{"name": fmt.Sprint("passing ", i), "idempotency_key": fmt.Sprint("made ", i)}
	answer, err := s.call(context.Background(), "create_environment", key)
	if err != nil {
		return err
	}
	p := place{s.rest, text(answer, "id")}
	if err := p.says("echo here > file; cat file", "here\n"); err != nil {
		return err
	}
	fork, err := p.call(context.Background(), "fork_environment", p.in(nil))
	if err != nil {
		return err
	}
	if _, err := p.call(context.Background(), "delete_environment", p.in(nil)); err != nil {
		return err
	}
	gone, made := p.id, text(fork, "id")
	d.note("what was deleted", func(r rest) error {
		var refused *problem
		_, err := r.call(context.Background(), "get_environment", object{"environment_id": gone})
		if !errors.As(err, &refused) || refused.Code != "not_found" {
			return fmt.Errorf("it is there again: %w", err)
		}
		if _, err = r.call(context.Background(), "create_environment", key); !errors.As(err, &refused) || refused.Code != "not_found" {
			return fmt.Errorf("its key makes it again: %w", err)
		}
		return nil
	})
	if i%2 == 0 {
		d.note("a fork", func(r rest) error { return place{r, made}.says("cat file", "here\n") })
		return nil
	}
	_, err = s.call(context.Background(), "delete_environment", object{"environment_id": made})
	return err
}
