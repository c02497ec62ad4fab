package core

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"

	"envapi/sandbox"
)

// Exec runs a command and waits for its end as long as the caller wants; it
// runs on after that, and also where the caller goes away. The answer is the
// command either way. An error means that nothing was started:
// `invalid_argument`, `too_large`, `not_found`, `environment_busy`,
// `network_refused`, `quota_exceeded`, `idempotency_mismatch` or `unavailable`.
func (s *Service) Exec(ctx context.Context, c Caller, in ExecInput) (Command, error) {
	v, err := newView(in.WaitMS, defaultExecWait, in.OutputBytes)
	if err != nil {
		return Command{}, err
	}
	if err := in.check(s.Limits); err != nil {
		return Command{}, err
	}
	if in.EnvironmentID, err = s.whereToRun(ctx, c, in.EnvironmentID); err != nil {
		return Command{}, err
	}
	key, err := idempotency("exec", in.IdempotencyKey, in.fingerprinted())
	if err != nil {
		return Command{}, err
	}
	f, err := onceUnder(ctx, s, c.Owner, key,
		func(id string) (found, error) { return s.find(ctx, c.Owner, id) },
		func() (found, error) { return s.start(ctx, c.Owner, in, key) })
	if err != nil {
		return Command{}, err
	}
	return s.show(ctx, f, v), nil
}

// fingerprinted is the part of the input that must be the same under the same
// idempotency key: what is run, not how it is answered.
func (in ExecInput) fingerprinted() ExecInput {
	in.WaitMS, in.OutputBytes, in.IdempotencyKey, in.Restoring = nil, nil, "", Restoring{}
	return in
}

// start writes the record of a command, then starts it. A crash in between leaves a
// record that the next start of the service marks as lost: what was run is always
// known, and nothing is run twice.
func (s *Service) start(ctx context.Context, o Owner, in ExecInput, key Idempotency) (found, error) {
	if err := ctx.Err(); err != nil {
		return found{}, err
	}
	p, leave, err := s.enterOwn(ctx, o, in.EnvironmentID, in.Restoring)
	if err != nil {
		return found{}, err
	}
	defer leave()
	ctx = context.WithoutCancel(ctx)

	r := newRun(p, s.newCommand(o, in))
	s.remember(r) // before the record, so that who finds the record finds this
	record, env, existed, err := s.Store.CreateCommand(ctx, r.record, s.Limits.RunningCommands, key)
	if err != nil || existed {
		s.forget(r)
		return found{record, nil}, missing(err, "environment", in.EnvironmentID)
	}
	s.disk.add(env)
	err = s.launch(ctx, r, env, in)
	if err != nil {
		s.insist("drop a command that was not started", record.ID, func(ctx context.Context) error {
			return s.Store.DropCommand(ctx, record.ID)
		})
		s.forget(r)
	}
	r.started.settle(err)
	return found{r.record, r}, err
}

// newCommand is the record of a command that is about to start.
func (s *Service) newCommand(o Owner, in ExecInput) CommandRecord {
	return CommandRecord{
		ID:            newID(idCommand),
		EnvironmentID: in.EnvironmentID,
		Owner:         o,
		Command:       in.shown(),
		Cwd:           directory(s.workspacePath(in.EnvironmentID), in.Cwd),
		MergeStderr:   in.MergeStderr,
		StartedAt:     s.now(),
		CommandEnd:    CommandEnd{Status: CommandRunning},
	}
}

// launch makes the log, starts the command and begins to watch it.
func (s *Service) launch(ctx context.Context, r *run, env EnvironmentRecord, in ExecInput) error {
	if in.TTY != nil {
		if err := r.tty.hold(s, env.Owner.Account); err != nil {
			return err
		}
	}
	if err := firstError(s.disk.check(env), s.checkRoom(ctx, env)); err != nil {
		return err
	}
	log, err := s.Logs.Create(env.ID, r.record.ID)
	if err != nil {
		return err
	}
	r.output = newRecorder(log)
	var process sandbox.Process
	r.in, err = s.inBox(ctx, r.place, env, func(ctx context.Context, box sandbox.Box) (err error) {
		process, err = box.Start(ctx, in.spec(r))
		return err
	})
	if errors.Is(err, sandbox.ErrStartUnknown) {
		process, err = vanished{}, nil // it may have run, so it is no error
	}
	if err != nil {
		log.Release()
		return s.startFailure(err, env)
	}
	r.begin(process)
	s.counts(r)
	s.watchers.Add(1)
	go s.watch(r, s.Limits.timeout(in.TimeoutMS))
	return nil
}

// spec is the command as the sandbox gets it.
func (in ExecInput) spec(r *run) sandbox.Command {
	command := sandbox.Command{
		ID:     r.record.ID,
		Argv:   in.Argv,
		Env:    in.Env,
		Dir:    r.record.Cwd,
		Stdout: r.output.stdout,
		Stdin:  stdin(in.Stdin),
		Input:  in.StdinOpen,
	}
	if in.Command != nil {
		command.Script = script(*in.Command)
	}
	if in.TTY != nil {
		command.Terminal = in.TTY.size()
	}
	if !in.MergeStderr {
		command.Stderr = r.output.stderr
	}
	return command
}

// script gives what bash is to run: the sandbox takes an empty script for none.
func script(text string) string {
	if text == "" {
		return ":"
	}
	return text
}

func stdin(text string) io.Reader {
	if text == "" {
		return nil
	}
	return strings.NewReader(text)
}

// startFailure says in the caller's words why a command was not started.
func (s *Service) startFailure(err error, env EnvironmentRecord) error {
	var start *sandbox.StartError
	switch {
	case errors.Is(err, sandbox.ErrNoTerminal):
		return unavailable("no terminal is left for it: end what has them open in this environment, or try again later").Because(err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return Errorf(CodeDiskFull, "the host's disk is full: what it was given could not be kept; try again later").Because(err)
	case !errors.As(err, &start):
		return err
	case start.Dir:
		return invalid("cwd", "cannot start in this cwd: %v", start.Err).Because(err)
	case errors.Is(err, syscall.EAGAIN):
		allowed := s.limitsOf(env).Processes
		return tooManyProcesses(allowed, allowed).Because(err)
	case errors.Is(err, syscall.E2BIG):
		return Errorf(CodeTooLarge, "the arguments and variables are longer than this system allows: put them into a file or stdin").
			With("allowed_bytes", maxArgvBytes).Because(err)
	}
	return err
}

// checkRoom refuses a command where others have taken every process already: it
// could be started, but not start anything. The system holds the limit; this is
// to say so, and asked only where another command may have taken them.
func (s *Service) checkRoom(ctx context.Context, env EnvironmentRecord) error {
	if len(s.runsIn(env.ID))+len(s.shellsIn(env.ID)) < 2 { // it is one of them
		return nil
	}
	box := s.boxOf(env.ID)
	if box == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, usageBound)
	defer cancel()
	now, err := box.Usage(ctx)
	if allowed := s.limitsOf(env).Processes; err == nil && now.Processes >= allowed {
		return tooManyProcesses(allowed, now.Processes)
	}
	return nil
}

func tooManyProcesses(allowed, used int) *Error {
	return Errorf(CodeQuotaExceeded, "the environment has as many processes as it may: list_processes gives them; end some with signal_process, a command's with signal_command, or all with reset_environment").
		With("limit", limitProcesses).With("allowed", allowed).With("used", used)
}
