package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"envapi/sandbox"
)

// RunInShell runs a command in a shell and waits for its end as Exec does. It
// fails with `invalid_argument`, `too_large`, `not_found`, `environment_busy`,
// `quota_exceeded`, `shell_busy`, `shell_closed`, `idempotency_mismatch` or
// `unavailable`; then nothing was started.
func (s *Service) RunInShell(ctx context.Context, c Caller, in RunInShellInput) (Command, error) {
	v, err := newView(in.WaitMS, defaultExecWait, in.OutputBytes)
	if err != nil {
		return Command{}, err
	}
	if err := firstError(checkScript(in.Command), checkTimeout(in.TimeoutMS, s.Limits.MaxTimeout)); err != nil {
		return Command{}, err
	}
	key, err := idempotency("run_in_shell", in.IdempotencyKey, in.fingerprinted())
	if err != nil {
		return Command{}, err
	}
	f, err := onceUnder(ctx, s, c.Owner, key,
		func(id string) (found, error) { return s.find(ctx, c.Owner, id) },
		func() (found, error) { return s.startIn(ctx, c.Owner, in, key) })
	if err != nil {
		return Command{}, err
	}
	return s.show(ctx, f, v), nil
}

// fingerprinted is the part of the input that must be the same under the same
// idempotency key: what is run and where, not how it is answered.
func (in RunInShellInput) fingerprinted() RunInShellInput {
	in.WaitMS, in.OutputBytes, in.IdempotencyKey = nil, nil, ""
	return in
}

// startIn starts a command in a shell of o's that takes commands.
func (s *Service) startIn(ctx context.Context, o Owner, in RunInShellInput, key Idempotency) (found, error) {
	sh, err := s.usableShell(ctx, o, in.ShellID)
	if err != nil {
		return found{}, err
	}
	if sh.record.Kind != ShellCommand {
		return found{}, invalid("shell_id", "shell %q is of kind terminal, which is typed into: use write_shell and read_shell, or open a shell of kind command", in.ShellID)
	}
	r, err := s.startInShell(ctx, sh, in, key)
	if err != nil {
		return found{}, err
	}
	return found{r.current(), r}, nil
}

// startInShell puts a command in line, writes its record, and starts it where it
// is its turn.
func (s *Service) startInShell(ctx context.Context, sh *shell, in RunInShellInput, key Idempotency) (*run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, leave, err := s.enterOwn(ctx, sh.record.Owner, sh.record.EnvironmentID, asItIs)
	if hasCode(err, CodeEnvironmentArchived) {
		err = s.hasEnded(ctx, sh) // with its environment
	}
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx = context.WithoutCancel(ctx)

	r := newRun(p, sh.newCommand(in, s.now()))
	r.shell, r.turn, r.in, r.eye = sh, newTurn(), sh.in, sh.eye
	s.remember(r) // before the record, as in start; and before others can be told that it runs
	ok, err := sh.join(r, in.Queue)
	if !ok || err != nil {
		s.forget(r)
		if !ok {
			err = s.hasEnded(ctx, sh)
		}
		return nil, err
	}
	err = s.recordInShell(ctx, r, in, key)
	if err != nil {
		r.begin(vanished{}) // who waits for it to begin need not any more
		sh.quit(r)
		s.forget(r)
		if errors.Is(err, sandbox.ErrShellClosed) || errors.Is(err, sandbox.ErrBoxClosed) {
			err = s.hasEnded(ctx, sh) // not before begin, for which that end waits
		}
	}
	r.started.settle(err)
	return r, err
}

func (sh *shell) newCommand(in RunInShellInput, at time.Time) CommandRecord {
	return CommandRecord{
		ID:            newID(idCommand),
		EnvironmentID: sh.record.EnvironmentID,
		ShellID:       sh.record.ID,
		Owner:         sh.record.Owner,
		Command:       shownText(in.Command),
		Cwd:           sh.cwd(),
		MergeStderr:   in.MergeStderr,
		StartedAt:     at,
		CommandEnd:    CommandEnd{Status: CommandRunning},
	}
}

// recordInShell writes the record of a command that is in line, and starts it
// where it is its turn.
func (s *Service) recordInShell(ctx context.Context, r *run, in RunInShellInput, key Idempotency) error {
	record, env, existed, err := s.Store.CreateCommand(ctx, r.record, s.Limits.RunningCommands, key)
	if err != nil {
		return missing(err, "environment", r.record.EnvironmentID)
	}
	if existed {
		return fmt.Errorf("%s was made under an idempotency key whose turn this call has", record.ID)
	}
	s.disk.add(env)
	r.shell.active(record.StartedAt)
	if err = s.launchInShell(ctx, r, env, in); err != nil {
		s.insist("drop a command that was not started", record.ID, func(ctx context.Context) error {
			return s.Store.DropCommand(ctx, record.ID)
		})
	}
	return err
}

// launchInShell makes the log, starts a command whose turn has come, and begins to
// watch it; one whose turn has not come is started when it has.
func (s *Service) launchInShell(ctx context.Context, r *run, env EnvironmentRecord, in RunInShellInput) error {
	if err := firstError(s.disk.check(env), s.checkRoom(ctx, env)); err != nil {
		return err
	}
	log, err := s.Logs.Create(env.ID, r.record.ID)
	if err != nil {
		return err
	}
	r.output = newRecorder(log)
	if isClosed(r.turn.come) {
		if err := s.runInShell(ctx, r, in); err != nil {
			log.Release()
			return s.startFailure(err, env)
		}
		s.counts(r)
	}
	s.watchers.Add(1)
	go func() {
		s.takeTurn(r, in)
		s.watch(r, s.Limits.timeout(in.TimeoutMS))
	}()
	return nil
}

// runInShell starts a command whose turn has come. Where nobody knows whether it
// was started it was lost, as in launch.
func (s *Service) runInShell(ctx context.Context, r *run, in RunInShellInput) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	r.shell.runs("")
	process, err := r.shell.process.Run(ctx, in.spec(r))
	if errors.Is(err, sandbox.ErrStartUnknown) {
		process, err = vanished{}, nil
	}
	if err != nil {
		return err
	}
	r.shell.runs(r.record.ID)
	r.begin(process)
	return nil
}

// spec is the command as the sandbox gets it.
func (in RunInShellInput) spec(r *run) sandbox.ShellCommand {
	command := sandbox.ShellCommand{
		Script:     script(in.Command),
		Stdout:     r.output.stdout,
		OnTerminal: in.TTY,
	}
	if !in.MergeStderr && !in.TTY {
		command.Stderr = r.output.stderr
	}
	if !in.TTY {
		command.Terminal = io.Writer(r.output.tty)
	}
	return command
}

// takeTurn waits in line and starts the command. One that does not come to its
// turn, or cannot be started then, ends as if it had been killed: it was recorded,
// so it is no error any more.
func (s *Service) takeTurn(r *run, in RunInShellInput) {
	if isClosed(r.begun) {
		return
	}
	select {
	case <-r.turn.come:
		if isClosed(r.shell.over) {
			break
		}
		if r.counted = s.work.enter(aCommand); !r.counted { // the service drains since this moment
			r.condemn(doom{CommandLost, ReasonServiceStopped, adviceNeverBegan})
			break
		}
		r.startsAt(s.now())
		s.insist("record the start of a command", r.record.ID, func(ctx context.Context) error {
			return s.Store.BeginCommand(ctx, r.record.ID, r.current().StartedAt)
		})
		err := s.runInShell(context.Background(), r, in)
		if err == nil {
			return
		}
		if !errors.Is(err, sandbox.ErrShellClosed) && !errors.Is(err, sandbox.ErrBoxClosed) {
			s.Log.Error("cannot start a command that waited in line", "id", r.record.ID, "shell", r.record.ShellID, "error", err)
			r.condemn(doom{CommandLost, ReasonSandboxFailed, "It waited in line and could then not be started: run it again."})
		}
	case <-r.turn.out: // condemned already
	case <-r.shell.over:
	case <-s.work.draining:
		r.condemn(doom{CommandLost, ReasonServiceStopped, adviceNeverBegan})
	}
	r.neverBegan()
}

// neverBegan ends a command that waited in line: by what ended its box, or else
// with its shell.
func (r *run) neverBegan() {
	if r.in.fate.Load() == nil {
		r.condemn(doom{status: CommandKilled, reason: ReasonShellClosed})
	}
	r.begin(vanished{})
}

// startsAt moves the start of a command that waited in line.
func (r *run) startsAt(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startedAt = at
}
