package core

import (
	"context"
	"fmt"
	"strings"
)

// The signals that can be sent.
const (
	signalKill    = "KILL"
	signalDefault = "TERM"
	signalNames   = "HUP INT QUIT KILL USR1 USR2 TERM CONT STOP TSTP WINCH"
)

// SignalCommand signals every process of a command. KILL is answered when none
// is left. A command that waits in line in a shell is taken out of it by any
// signal. On a command that has ended it does nothing and answers the result.
func (s *Service) SignalCommand(ctx context.Context, c Caller, in SignalCommandInput) (Command, error) {
	name, err := signalName(in.Signal)
	if err != nil {
		return Command{}, err
	}
	f, err := s.find(ctx, c.Owner, in.CommandID)
	if err != nil {
		return Command{}, err
	}
	s.used(f.record.EnvironmentID)
	if r := f.run; r != nil && !isClosed(r.ended.known) {
		if err := s.signal(ctx, r, name); err != nil {
			return Command{}, err
		}
	}
	return s.show(ctx, f, view{inline: defaultInline}), nil
}

// signal signals a command that has not ended, as far as is known.
func (s *Service) signal(ctx context.Context, r *run, name string) error {
	if r.turn != nil && r.shell.dismiss(r, doom{status: CommandKilled, reason: ReasonSignal}) {
		r.awaitRecord(ctx)
		return nil
	}
	select {
	case <-r.begun:
	case <-ctx.Done():
		return ctx.Err()
	}
	if name == signalKill {
		s.kill(r, doom{status: CommandKilled, reason: ReasonSignal})
		r.awaitRecord(ctx)
		return nil
	}
	if err := r.process.Signal(ctx, name); err != nil && !isClosed(r.process.Done()) {
		return fmt.Errorf("cannot signal %s: %w", r.record.ID, err)
	}
	return nil
}

// awaitRecord waits for the end of a command that must come, and not for a prompt:
// its shell's terminal may be another's by now.
func (r *run) awaitRecord(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, MaxWait)
	defer cancel()
	_ = r.ended.wait(ctx) // else it is answered as it is
}

// signalName gives the name of a signal without SIG.
func signalName(name string) (string, error) {
	if name == "" {
		return signalDefault, nil
	}
	short := strings.TrimPrefix(strings.ToUpper(name), "SIG")
	for _, known := range strings.Fields(signalNames) {
		if short == known {
			return known, nil
		}
	}
	return "", invalid("signal", "signal %.16q is not one of %s", name, strings.ReplaceAll(signalNames, " ", ", "))
}
