package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"envapi/sandbox"
)

// startBound is how long the start of a command may take, the opening of a box
// included: a thousand times what it takes on an idle machine.
const startBound = 30 * time.Second

// openBox opens a box for an environment.
func (s *Service) openBox(ctx context.Context, env EnvironmentRecord) (sandbox.Box, error) {
	if err := s.usable(ctx, env); err != nil {
		return nil, err
	}
	box, err := s.Sandbox.Open(ctx, sandbox.Spec{
		ID:        env.ID,
		Workspace: s.Workspaces.Path(env.ID),
		UID:       env.HostUID,
		Account:   env.Owner.Account,
		Limits:    s.limitsOf(env).ofBox(),
	})
	if err != nil {
		s.Log.Error("cannot open a box", "environment", env.ID, "error", err)
		return nil, unavailable("cannot open the sandbox of environment %q: try again; if it stays so, its operator finds the cause in the log", env.ID).Because(err)
	}
	return box, nil
}

// usable refuses an environment that the service, as it runs now, cannot keep apart
// from others.
func (s *Service) usable(ctx context.Context, env EnvironmentRecord) error {
	if err := s.admit(ctx, env.Owner.Account); err != nil {
		return err
	}
	if s.Sandbox.NeedsUID() && env.HostUID == 0 {
		return unavailable("environment %q was made while the service ran as an ordinary user and cannot be used by the one that runs as root: run the service as it was, or make another environment", env.ID)
	}
	return nil
}

// admit refuses other accounts where the sandbox cannot keep accounts apart:
// the first account that makes or uses an environment is the one.
func (s *Service) admit(ctx context.Context, account string) error {
	if !s.Sandbox.Report().SingleAccount {
		return nil
	}
	served, err := s.Store.ClaimAccount(ctx, account)
	if err != nil {
		return fmt.Errorf("cannot claim the account: %w", err)
	}
	if served != account {
		return unavailable("the sandbox of this host cannot keep accounts apart, so it serves one account only, and that is another: use a host with a stronger tier (see sandbox in get_status)")
	}
	return nil
}

// start starts something in a box that is not being let go.
func (o *opening) start(ctx context.Context, start func(context.Context, sandbox.Box) error) error {
	if !o.take() {
		return sandbox.ErrBoxClosed
	}
	return start(ctx, o.box)
}

// take notes that something is to be started, unless the box is let go.
func (o *opening) take() bool {
	o.using.Lock()
	defer o.using.Unlock()
	if !o.retired {
		o.uses++
	}
	return !o.retired
}

// taken says how often take was called.
func (o *opening) taken() int64 {
	o.using.Lock()
	defer o.using.Unlock()
	return o.uses
}

// retire lets the box go, unless something was to be started in it after so many uses.
func (o *opening) retire(uses int64) bool {
	o.using.Lock()
	defer o.using.Unlock()
	o.retired = o.retired || o.uses == uses
	return o.uses == uses
}

// inBox starts something in the box of an environment, and gives that. A box that
// ended before has not started it; then it is tried once more in a new one.
func (s *Service) inBox(ctx context.Context, p *place, env EnvironmentRecord, start func(context.Context, sandbox.Box) error) (*opening, error) {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	var err error
	for range 2 {
		var in *opening
		in, err = p.use(s.limitsOf(env), func() (sandbox.Box, error) { return s.openBox(ctx, env) })
		if err != nil {
			return nil, err
		}
		if err = in.start(ctx, start); !errors.Is(err, sandbox.ErrBoxClosed) {
			return in, err
		}
		select {
		case <-in.box.Done(): // it may be closed to starts a little before it is gone
		case <-ctx.Done():
		}
	}
	return nil, unavailable("the sandbox of environment %q ended while something was to be started in it: try again", env.ID).Because(err)
}
