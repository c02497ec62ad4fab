package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// perAccount is how many environments one account of a crowd has, which is what the
// deployment's default lets it have.
const perAccount = 50

// makers is how many calls of a crowd are under way at one time.
const makers = 16

// member is one environment of a crowd.
type member struct {
	*client
	number int
	nonce  string
	shell  string // open in it, or ""
	waits  string // the command that runs in it and waits for a line, or ""
}

// gather makes a crowd, sees that all of it is there and works, and removes it again.
func gather(ctx context.Context, out io.Writer, o options) (err error) {
	s, err := startService(ctx, o.program, "ENVAPI_MAX_REQUESTS_PER_SECOND=0", "ENVAPI_MAX_TERMINALS_PER_ACCOUNT=100000")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	tally := newTally()
	tally.startCounting()
	o.clients, o.hostile = (o.crowd.environments+perAccount-1)/perAccount, 0
	all, err := hire(ctx, s, tally, o)
	if err != nil {
		return err
	}
	defer all.dismiss()
	members := make([]*member, o.crowd.environments)
	for i := range members {
		members[i] = &member{client: all.clients[i/perAccount].beside(o.seed, i), number: i}
	}
	if err := all.fill(ctx, s, o.seed); err != nil {
		return err
	}
	before, err := s.rest(ctx, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-34s %s\n", "nobody is there", before)
	if err := assemble(ctx, out, s, members, o.crowd); err != nil {
		return err
	}
	if err := disperse(ctx, out, members); err != nil {
		return err
	}
	all.dismiss()
	after, err := s.rest(ctx, &before)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-34s %s\n\n", "all have gone", after)
	tally.print(out)
	// What a thousand had is given back late, or kept for the next: memory is not compared.
	allowed := growth
	allowed.memory, allowed.threads, allowed.disk = 1<<40, 1<<20, 1<<40
	return errors.Join(tally.verdict(nil), after.grown(before, allowed))
}

// beside is another client of the same account, that may call at the same time.
func (c *client) beside(seed uint64, number int) *client {
	other := *c
	other.rand = newRand(seed, uint64(1<<32+number)) //nolint:gosec // it is above -1<<32
	other.tools = nil                                // over REST alone: a conversation is not for several
	return &other
}

// fillers is more than how many boxes' cgroups a service keeps for the next ones.
const fillers = 20

// fill lets the service have once what it then keeps: boxes of more accounts than it
// keeps the cgroups of, each with as many commands at one time as it keeps slots for.
// What it holds at rest is the same from then on, whatever comes.
func (all *crew) fill(ctx context.Context, s *service, seed uint64) error {
	members := make([]*member, fillers)
	for i := range members {
		c := all.clients[0].beside(seed, -1-i)
		c.account = fmt.Sprintf("filler-%d", i)
		var err error
		if c.token, err = s.token(c.account); err != nil {
			return err
		}
		members[i] = &member{client: c, number: i}
	}
	for _, do := range []func(*member, context.Context) error{
		(*member).make, (*member).open, (*member).start, (*member).echo, (*member).finish, (*member).remove,
	} {
		if err := each(members, func(m *member) error { return do(m, ctx) }); err != nil {
			return fmt.Errorf("cannot fill what is kept: %w", err)
		}
	}
	all.dismiss()
	return nil
}

// assemble makes the crowd, a kind after the other, says how long each took and what it
// holds, and asks all of it whether it works while all of it is there.
func assemble(ctx context.Context, out io.Writer, s *service, members []*member, o crowd) error {
	shells, commands := members[:min(o.shells, len(members))], members[:min(o.commands, len(members))]
	free := available()
	for _, part := range []struct {
		what string
		of   []*member
		do   func(*member, context.Context) error
	}{
		{"environments, each with a command", members, (*member).make},
		{"shells, each with a command", shells, (*member).open},
		{"commands that wait for a line", commands, (*member).start},
		{"execs among all of them", members, (*member).echo},
		{"commands in the shells", shells, (*member).echoInShell},
	} {
		begun := time.Now()
		if err := each(part.of, func(m *member) error { return part.do(m, ctx) }); err != nil {
			return fmt.Errorf("%s: %w", part.what, err)
		}
		took := time.Since(begun).Round(time.Millisecond)
		now, err := s.held(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-34s in %s: %s\n", fmt.Sprintf("%d %s", len(part.of), part.what), took, now)
	}
	if err := countAll(ctx, members, len(shells), len(commands)); err != nil {
		return err
	}
	now, err := s.held(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-34s %s\n%-34s %.0f MiB of the machine's memory\n", "all are there", now, "", mib(free-available()))
	return alone(ctx, out, members)
}

// alone times calls of one client at a time while the crowd is there.
func alone(ctx context.Context, out io.Writer, members []*member) error {
	times := make([]time.Duration, 0, 200)
	for i := range cap(times) {
		m := members[i%len(members)]
		begun := time.Now()
		if _, err := m.rest(ctx, "exec", m.here(object{"argv": []string{"true"}})); err != nil {
			return err
		}
		times = append(times, time.Since(begun))
	}
	slices.Sort(times)
	fmt.Fprintf(out, "%-34s p50 %s, p99 %s\n", "exec of argv [true], one at a time", ms(quantile(times, 0.5)), ms(quantile(times, 0.99)))
	return nil
}

// countAll sees that the service knows of all shells and commands.
func countAll(ctx context.Context, members []*member, shells, commands int) error {
	var open, running int
	for i := 0; i < len(members); i += perAccount {
		for _, list := range []struct {
			operation string
			input     object
			count     *int
		}{
			{"list_shells", object{"state": "open", "limit": 200}, &open},
			{"list_commands", object{"status": "running", "limit": 200}, &running},
		} {
			page, err := members[i].call(ctx, list.operation, list.input)
			if err != nil {
				return err
			}
			*list.count += len(items(page))
		}
	}
	return errors.Join(want("open shells", strconv.Itoa(open), strconv.Itoa(shells)), want("running commands", strconv.Itoa(running), strconv.Itoa(commands)))
}

// disperse ends the commands, each by the line that it waits for, and deletes everything.
func disperse(ctx context.Context, out io.Writer, members []*member) error {
	begun := time.Now()
	if err := each(members, func(m *member) error { return m.finish(ctx) }); err != nil {
		return err
	}
	if err := each(members, func(m *member) error { return m.remove(ctx) }); err != nil {
		return err
	}
	fmt.Fprintf(out, "%-34s in %s\n", "ended and deleted", time.Since(begun).Round(time.Millisecond))
	return nil
}

func (m *member) make(ctx context.Context) error {
	made, err := m.call(ctx, "create_environment", object{"name": fmt.Sprintf("crowd-%d", m.number)})
	if err != nil {
		return err
	}
	m.home, m.nonce = text(made, "id"), m.client.nonce()
	return m.echo(ctx)
}

// echo runs something in the environment, which knows nothing of the others.
func (m *member) echo(ctx context.Context) error {
	got, err := m.run(ctx, m.home, "ls; echo "+m.nonce+" | tee mine")
	return errors.Join(err, want("its answer", strings.TrimPrefix(got, "mine\n"), m.nonce+"\n"))
}

func (m *member) open(ctx context.Context) error {
	made, err := m.call(ctx, "open_shell", m.here(nil))
	if err != nil {
		return err
	}
	m.shell = text(made, "id")
	if _, err := m.inShell(ctx, object{"shell_id": m.shell, "command": "A=" + m.nonce}); err != nil {
		return err
	}
	return m.echoInShell(ctx)
}

// echoInShell sees that the shell still has what it was told.
func (m *member) echoInShell(ctx context.Context) error {
	a, err := m.inShell(ctx, object{"shell_id": m.shell, "command": "echo $A"})
	return errors.Join(err, want("the shell's answer", text(a, "stdout", "text"), m.nonce+"\n"))
}

// start starts a command that waits for a line.
func (m *member) start(ctx context.Context) error {
	a, err := m.call(ctx, "exec", m.here(object{"command": "read -r line; echo \"$line\"", "stdin_open": true, "wait_ms": 0}))
	m.waits = text(a, "id")
	return errors.Join(err, want("status", text(a, "status"), "running"))
}

// finish gives it the line.
func (m *member) finish(ctx context.Context) error {
	if m.waits == "" {
		return nil
	}
	a, err := m.call(ctx, "write_input", object{"command_id": m.waits, "data": m.nonce + "\n"})
	if err != nil {
		return err
	}
	a, err = m.end(ctx, a)
	if err == nil && text(a, "stdout", "text") == "" { // an answer to input has the output of then
		a, err = m.call(ctx, "get_command", object{"command_id": m.waits})
	}
	return errors.Join(err, want("the command's answer", text(a, "stdout", "text"), m.nonce+"\n"))
}

func (m *member) remove(ctx context.Context) error {
	_, err := m.call(ctx, "delete_environment", m.here(nil))
	return err
}

// each does something with every member, a few at one time, and gives the first errors.
func each(members []*member, do func(*member) error) error {
	next := make(chan *member)
	failed := make(chan error, makers)
	var all sync.WaitGroup
	for range makers {
		all.Go(func() {
			var err error
			for m := range next {
				if err == nil {
					if err = do(m); err != nil {
						err = fmt.Errorf("environment %d: %w", m.number, err)
					}
				}
			}
			failed <- err
		})
	}
	for _, m := range members {
		next <- m
	}
	close(next)
	all.Wait()
	close(failed)
	var wrong []error
	for err := range failed {
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

// available is how much memory the machine could give; 0 where it does not say.
func available() int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err == nil {
				return kib << 10
			}
		}
	}
	return 0
}
