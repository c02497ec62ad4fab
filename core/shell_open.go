package core

import (
	"cmp"
	"context"
	"errors"

	"envapi/sandbox"
)

// The size of a terminal, in characters.
const (
	defaultCols  = 80
	defaultRows  = 24
	largestWidth = 1000 // of either
)

// OpenShell opens a shell and answers when it takes commands, or, of kind
// terminal, was started. It fails with `invalid_argument`, `not_found`,
// `environment_busy`, `quota_exceeded`, `idempotency_mismatch` or `unavailable`.
func (s *Service) OpenShell(ctx context.Context, c Caller, in OpenShellInput) (Shell, error) {
	in, err := in.complete()
	if err != nil {
		return Shell{}, err
	}
	if in.EnvironmentID, err = s.whereToRun(ctx, c, in.EnvironmentID); err != nil {
		return Shell{}, err
	}
	key, err := idempotency("open_shell", in.IdempotencyKey, in.fingerprinted())
	if err != nil {
		return Shell{}, err
	}
	f, err := onceUnder(ctx, s, c.Owner, key,
		func(id string) (foundShell, error) { return s.findShell(ctx, c.Owner, id) },
		func() (foundShell, error) { return s.makeShell(ctx, c.Owner, in, key) })
	if err != nil {
		return Shell{}, err
	}
	return s.showShell(ctx, f), nil
}

// fingerprinted is the part of the input that must be the same under the same
// idempotency key.
func (in OpenShellInput) fingerprinted() OpenShellInput {
	in.IdempotencyKey, in.Restoring = "", Restoring{}
	return in
}

// complete fills in the defaults and refuses what no shell can be made of.
func (in OpenShellInput) complete() (OpenShellInput, error) {
	in.Kind = cmp.Or(in.Kind, string(ShellCommand))
	if kind := ShellKind(in.Kind); kind != ShellCommand && kind != ShellTerminal {
		return in, invalid("kind", "kind %.16q is not one of command, terminal", in.Kind)
	}
	size := TerminalSize{Cols: defaultCols, Rows: defaultRows}
	if in.Cols != nil {
		size.Cols = *in.Cols
	}
	if in.Rows != nil {
		size.Rows = *in.Rows
	}
	in.Cols, in.Rows = &size.Cols, &size.Rows
	return in, firstError(size.check("cols", "rows"), checkName(in.Name), checkCwd(in.Cwd), checkEnv(in.Env))
}

// check refuses a size that no terminal has.
func (t TerminalSize) check(cols, rows string) error {
	return firstError(checkWidth(cols, t.Cols), checkWidth(rows, t.Rows))
}

func checkWidth(field string, n int) error {
	if n < 1 || n > largestWidth {
		return invalid(field, "%s is %d: give 1 to %d", field, n, largestWidth)
	}
	return nil
}

func (t TerminalSize) size() *sandbox.Size {
	return &sandbox.Size{Cols: uint16(t.Cols), Rows: uint16(t.Rows)} //nolint:gosec // checked
}

// makeShell writes the record of a shell, then opens it, as start does with a command.
func (s *Service) makeShell(ctx context.Context, o Owner, in OpenShellInput, key Idempotency) (foundShell, error) {
	if err := ctx.Err(); err != nil {
		return foundShell{}, err
	}
	p, leave, err := s.enterOwn(ctx, o, in.EnvironmentID, in.Restoring)
	if err != nil {
		return foundShell{}, err
	}
	defer leave()
	ctx = context.WithoutCancel(ctx)

	sh := newShell(p, s.newShellRecord(o, in))
	s.rememberShell(sh) // before the record, as in start
	record, env, existed, err := s.Store.CreateShell(ctx, sh.record, s.Limits.Shells, key)
	if err != nil || existed {
		s.forgetShell(sh)
		return foundShell{record, nil}, missing(err, "environment", in.EnvironmentID)
	}
	s.disk.add(env)
	err = s.launchShell(ctx, sh, env, in)
	if err != nil {
		s.insist("drop a shell that was not opened", sh.record.ID, func(ctx context.Context) error {
			return s.Store.DropShell(ctx, sh.record.ID)
		})
		s.forgetShell(sh)
	}
	sh.opened.settle(err)
	return foundShell{sh.current(), sh}, err
}

func (s *Service) newShellRecord(o Owner, in OpenShellInput) ShellRecord {
	now := s.now()
	return ShellRecord{
		ID:             newID(idShell),
		EnvironmentID:  in.EnvironmentID,
		Owner:          o,
		Name:           in.Name,
		Kind:           ShellKind(in.Kind),
		Cols:           *in.Cols,
		Rows:           *in.Rows,
		Cwd:            directory(s.workspacePath(in.EnvironmentID), in.Cwd),
		OpenedAt:       now,
		LastActivityAt: now,
		State:          ShellOpen,
	}
}

// launchShell makes the log, starts bash and begins to watch it.
func (s *Service) launchShell(ctx context.Context, sh *shell, env EnvironmentRecord, in OpenShellInput) error {
	if err := firstError(sh.tty.hold(s, env.Owner.Account), s.disk.check(env), s.checkRoom(ctx, env)); err != nil {
		return err
	}
	log, err := s.Logs.Create(env.ID, sh.record.ID)
	if err != nil {
		return err
	}
	sh.output = newRecorder(log)
	sh.in, err = s.inBox(ctx, sh.place, env, func(ctx context.Context, box sandbox.Box) (err error) {
		sh.process, err = box.OpenShell(ctx, sandbox.ShellSpec{
			ID:          sh.record.ID,
			Interactive: sh.record.Kind == ShellTerminal,
			Env:         in.Env,
			Dir:         sh.record.Cwd,
			Size:        *TerminalSize{sh.record.Cols, sh.record.Rows}.size(),
			Output:      sh.output.tty,
		})
		return err
	})
	if errors.Is(err, sandbox.ErrStartUnknown) {
		err = unavailable("the sandbox of environment %q ended while the shell was opened: open another", env.ID).Because(err)
	}
	if err != nil {
		log.Release()
		return s.startFailure(bashFailure(err, in.Env), env)
	}
	s.watchers.Add(1)
	go s.watchShell(sh)
	return nil
}

// bashFailure says in the caller's words that bash was not fit to run commands: by
// the variables given, which can always do that, or else for want of something.
func bashFailure(err error, given map[string]string) error {
	var bash *sandbox.BashError
	switch {
	case !errors.As(err, &bash):
		return err
	case len(given) > 0:
		return invalid("env", "bash %s: the PATH given must lead to it, and no variable may keep it from running commands", bash.How).Because(err)
	}
	return unavailable("bash %s: end what takes the memory or the processes of the environment, or try again", bash.How).Because(err)
}
