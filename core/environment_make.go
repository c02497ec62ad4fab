package core

import (
	"context"
	"errors"
	"fmt"
)

// CreateEnvironment makes an environment and its empty folder. Both are on disk
// when it returns. It fails with `invalid_argument`, `quota_exceeded`,
// `network_refused`, `idempotency_mismatch` or, where the sandbox serves
// another account only, `unavailable`.
func (s *Service) CreateEnvironment(ctx context.Context, c Caller, in CreateEnvironmentInput) (Environment, error) {
	if err := in.check(s.Limits); err != nil {
		return Environment{}, err
	}
	input := in
	input.IdempotencyKey = ""
	key, err := idempotency("create_environment", in.IdempotencyKey, input)
	if err != nil {
		return Environment{}, err
	}
	env, err := s.makeOnce(ctx, c.Owner, in, key)
	if err != nil {
		return Environment{}, err
	}
	return s.environment(ctx, env)
}

// makeOnce makes an environment, or finds the one that the same key made
// before. One that another call is making is waited for, and if that call fails
// so does this one.
func (s *Service) makeOnce(ctx context.Context, o Owner, in CreateEnvironmentInput, key Idempotency) (EnvironmentRecord, error) {
	return s.onceUnderKey(ctx, o, func() (EnvironmentRecord, bool, error) {
		return s.makeEnvironment(ctx, s.newEnvironment(o, in), key)
	})
}

// onceUnderKey makes an environment as makeIt does, which says whether it found one that
// the same key made.
func (s *Service) onceUnderKey(ctx context.Context, o Owner, makeIt func() (env EnvironmentRecord, existed bool, err error)) (EnvironmentRecord, error) {
	if err := s.begin(); err != nil {
		return EnvironmentRecord{}, err
	}
	defer s.open.RUnlock()
	if err := s.admit(ctx, o.Account); err != nil {
		return EnvironmentRecord{}, err
	}
	for {
		env, existed, err := makeIt()
		if err != nil || !existed {
			return env, err
		}
		s.mu.Lock()
		making := s.making[env.ID]
		s.mu.Unlock()
		if making != nil {
			if err := making.wait(ctx); err != nil {
				return env, err
			}
		}
		env, err = s.Store.Environment(ctx, o, env.ID)
		if !errors.Is(err, ErrNoRecord) {
			return env, err
		}
		// The other call failed in between and left nothing: now it is our turn.
	}
}

func (s *Service) newEnvironment(o Owner, in CreateEnvironmentInput) EnvironmentRecord {
	now := s.now()
	return EnvironmentRecord{
		ID:             newID(idEnvironment),
		Owner:          o,
		Name:           in.Name,
		Labels:         in.Labels,
		State:          StateActive,
		Limits:         in.Limits,
		Idle:           askedIdle(in.IdleMS),
		CreatedAt:      now,
		LastActivityAt: now,
	}
}

// makeEnvironment writes the record, then makes the folder: the record decides
// the host uid that the folder belongs to. A crash in between leaves a record
// without a folder, which the next start makes.
func (s *Service) makeEnvironment(ctx context.Context, env EnvironmentRecord, key Idempotency) (made EnvironmentRecord, existed bool, err error) {
	if err := ctx.Err(); err != nil {
		return EnvironmentRecord{}, false, err
	}
	ctx = context.WithoutCancel(ctx)
	defer s.announce(env.ID, &err)()

	made, existed, err = s.Store.CreateEnvironment(ctx, env, s.quota(), s.uids(), key)
	if err != nil || existed {
		return made, existed, err
	}
	if err := s.Workspaces.Create(ctx, made.ID, made.HostUID); err != nil {
		s.insist("drop an environment without a folder", made.ID, func(ctx context.Context) error {
			return s.Store.DropEnvironment(ctx, made.ID)
		})
		return EnvironmentRecord{}, false, fmt.Errorf("cannot make the folder of an environment: %w", err)
	}
	return made, false, nil
}

// quota is that of environments.
func (s *Service) quota() EnvironmentQuota {
	return EnvironmentQuota{
		PerAccount: s.Limits.EnvironmentsPerAccount, PerProfile: s.Limits.EnvironmentsPerProfile,
		Archived: s.Limits.ArchivedEnvironments,
	}
}

// announce lets others find an environment while it is being made: before its
// record is written, so that who finds the record finds this too. The function
// that it gives tells them how it ended.
func (s *Service) announce(id string, err *error) func() {
	making := newOutcome()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making[id] = &making
	return func() {
		making.settle(*err)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.making, id)
	}
}

// uids is where the uid of a new environment comes from: from nowhere, unless
// the sandbox needs one.
func (s *Service) uids() UIDRange {
	if s.Sandbox.NeedsUID() {
		return s.UIDs
	}
	return UIDRange{}
}
