package core

import (
	"context"
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
	env, err := s.create(ctx, c.Owner, in, key)
	if err != nil {
		return Environment{}, err
	}
	return s.environment(ctx, env)
}

func (s *Service) create(ctx context.Context, o Owner, in CreateEnvironmentInput, key Idempotency) (EnvironmentRecord, error) {
	return s.makeOnce(ctx, o, key, func() (EnvironmentRecord, error) {
		return s.makeEnvironment(ctx, s.newEnvironment(o, in), key)
	})
}

// makeOnce makes an environment as makeIt does, or finds the one that the same key made
// before, as it is now.
func (s *Service) makeOnce(ctx context.Context, o Owner, key Idempotency, makeIt func() (EnvironmentRecord, error)) (EnvironmentRecord, error) {
	if err := s.begin(); err != nil {
		return EnvironmentRecord{}, err
	}
	defer s.done()
	if err := s.admit(ctx, o.Account); err != nil {
		return EnvironmentRecord{}, err
	}
	return onceUnder(ctx, s, o, key, func(id string) (EnvironmentRecord, error) { return s.ownEnvironment(ctx, o, id) }, makeIt)
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
func (s *Service) makeEnvironment(ctx context.Context, env EnvironmentRecord, key Idempotency) (EnvironmentRecord, error) {
	if err := ctx.Err(); err != nil {
		return EnvironmentRecord{}, err
	}
	ctx = context.WithoutCancel(ctx)

	made, existed, err := s.Store.CreateEnvironment(ctx, env, s.quota(), s.uids(), key)
	if err != nil || existed {
		return made, err
	}
	if err := s.Workspaces.Create(ctx, made.ID, made.HostUID); err != nil {
		s.dropMade(ctx, made.ID)
		return EnvironmentRecord{}, fmt.Errorf("cannot make the folder of an environment: %w", err)
	}
	return made, nil
}

// dropMade drops an environment whose folder could not be made. It may be there all the
// same; where it cannot be taken away now, the next start does it.
func (s *Service) dropMade(ctx context.Context, id string) {
	if err := s.Workspaces.Remove(ctx, id, func() {}); err != nil {
		s.Log.Error("cannot remove the folder of an environment that was not made", "id", id, "error", err)
	}
	s.insist("drop an environment without a folder", id, func(ctx context.Context) error {
		return s.Store.DropEnvironment(ctx, id)
	})
}

// quota is that of environments.
func (s *Service) quota() EnvironmentQuota {
	return EnvironmentQuota{
		PerAccount: s.Limits.EnvironmentsPerAccount, PerProfile: s.Limits.EnvironmentsPerProfile,
		Archived: s.Limits.ArchivedEnvironments,
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
