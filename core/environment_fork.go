package core

import (
	"context"
	"fmt"
)

// maxForks is how many forks of an account are under way at one time: each reads and
// writes a whole folder.
const maxForks = 4

// ForkEnvironment makes an environment with a copy of another's folder, which stays as
// it is and can be used meanwhile: its files are copied as they are when they are read.
// One that is archived is restored. When it returns the new folder is whole, on disk. It
// fails as CreateEnvironment does, and with `environment_busy`, `rate_limited` or
// `disk_full`.
func (s *Service) ForkEnvironment(ctx context.Context, c Caller, in ForkEnvironmentInput) (Environment, error) {
	asCreated := in.created()
	if err := asCreated.check(s.Limits); err != nil {
		return Environment{}, err
	}
	input := in
	input.IdempotencyKey = ""
	key, err := idempotency("fork_environment", in.IdempotencyKey, input)
	if err != nil {
		return Environment{}, err
	}
	env, err := s.makeOnce(ctx, c.Owner, key, func() (EnvironmentRecord, error) {
		made := s.newEnvironment(c.Owner, asCreated)
		made.State = StateRestoring // without an archive: a start drops it, unless it is active by then
		return s.makeFork(ctx, made, in, key)
	})
	if err != nil {
		return Environment{}, err
	}
	if env.State == StateRestoring { // one that failed under the same key
		return Environment{}, busy(env.State)
	}
	return s.environment(ctx, env)
}

// created is what a fork has in common with what is created.
func (in ForkEnvironmentInput) created() CreateEnvironmentInput {
	return CreateEnvironmentInput{Name: in.Name, Labels: in.Labels, Limits: in.Limits, IdleMS: in.IdleMS}
}

// makeFork writes the record, then makes the folder, as makeEnvironment does. Until it
// is done the new environment is restoring, for all who find it.
func (s *Service) makeFork(ctx context.Context, env EnvironmentRecord, in ForkEnvironmentInput, key Idempotency) (made EnvironmentRecord, err error) {
	if err := ctx.Err(); err != nil {
		return EnvironmentRecord{}, err
	}
	p := s.hold(env.ID)
	defer s.letGo(p)
	if err := s.pass(ctx, p, StateRestoring); err != nil {
		return EnvironmentRecord{}, err
	}
	defer func() { p.settle(err) }()
	ctx, cancel := s.untilClosing(ctx)
	defer cancel()

	made, existed, err := s.Store.CreateEnvironment(context.WithoutCancel(ctx), env, s.quota(), s.uids(), key)
	if err != nil || existed {
		return made, err
	}
	made, err = s.copyInto(ctx, made, in)
	if err != nil {
		s.takeBackFork(p, env)
		return EnvironmentRecord{}, s.cutShort(err)
	}
	return made, nil
}

// copyInto copies the folder and makes the new environment active.
func (s *Service) copyInto(ctx context.Context, env EnvironmentRecord, in ForkEnvironmentInput) (EnvironmentRecord, error) {
	if err := s.forks.enter(env.Owner.Account, "forks", maxForks); err != nil {
		return env, err
	}
	defer s.forks.leave(env.Owner.Account)
	source, err := s.openSource(ctx, env.Owner, in.EnvironmentID)
	if err != nil {
		return env, err
	}
	defer source.close()
	env.Limits = source.env.Limits.over(in.Limits)
	if in.IdleMS == nil {
		env.Idle = source.env.Idle
	}
	if err := s.fitsInto(ctx, source.env, env); err != nil {
		return env, err
	}
	limits := s.limitsOf(env)
	err = s.whileSpace(ctx, 1, func(ctx context.Context) error {
		return s.Workspaces.Copy(ctx, source.env.ID, env.ID, env.HostUID, DiskUse{Bytes: limits.DiskBytes, Files: limits.Files})
	})
	if err != nil {
		return env, fmt.Errorf("cannot copy the folder of %s: %w", source.env.ID, err)
	}
	if source.place.passes.Load() != source.passes {
		return env, Errorf(CodeEnvironmentBusy, "the environment was reset, archived or deleted while it was copied: try again").
			With("state", string(source.place.state())).With("retry_after_ms", retryAfter.Milliseconds())
	}
	return s.Store.UpdateEnvironment(context.WithoutCancel(ctx), env.Owner, env.ID, func(now *EnvironmentRecord) error {
		now.State, now.Limits, now.Idle = StateActive, env.Limits, env.Idle
		return nil
	})
}

// source is an environment that is being copied. It can be used meanwhile, and is not
// archived for being idle.
type source struct {
	env    EnvironmentRecord
	place  *place
	passes int64 // of the place, when it was opened
	close  func()
}

func (s *Service) openSource(ctx context.Context, o Owner, id string) (*source, error) {
	p, leave, err := s.enterOwn(ctx, o, id, Restoring{})
	if err != nil {
		return nil, err
	}
	defer leave()
	env, err := s.ownEnvironment(ctx, o, id)
	if err == nil && env.State != StateActive {
		err = busy(env.State)
	}
	if err := firstError(err, s.hasSpace()); err != nil {
		return nil, err
	}
	s.hold(id)
	end := s.using(id)
	return &source{env, p, p.passes.Load(), func() { end(); s.letGo(p) }}, nil
}

// fitsInto refuses a folder that is larger than the limits of the new environment, where
// those are lower.
func (s *Service) fitsInto(ctx context.Context, from, to EnvironmentRecord) error {
	before, limits := s.limitsOf(from), s.limitsOf(to)
	if limits.DiskBytes >= before.DiskBytes && limits.Files >= before.Files {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, roomBound)
	defer cancel()
	bytes, files, err := s.Workspaces.Usage(bounded, from.ID, "")
	if err != nil {
		return unavailable("cannot count what the environment holds within %v: leave out limits.disk_bytes and limits.files, or try again", roomBound).Because(err)
	}
	return FitsInto(DiskUse{bytes, files}, DiskUse{limits.DiskBytes, limits.Files})
}

// FitsInto fails with `quota_exceeded` where a folder holds more than a fork of it may.
func FitsInto(use, most DiskUse) error {
	return firstError(tooSmall(limitDiskBytes, use.Bytes, most.Bytes), tooSmall(limitFiles, use.Files, most.Files))
}

func tooSmall(limit string, used, allowed int64) error {
	if used <= allowed {
		return nil
	}
	return Errorf(CodeQuotaExceeded, "the folder holds %d, and the fork may hold %d (limit %s): raise that limit, or delete files first", used, allowed, limit).
		With("limit", limit).With("allowed", allowed).With("used", used)
}

// takeBackFork drops a fork that was not made, now or as soon as that can be done.
func (s *Service) takeBackFork(p *place, env EnvironmentRecord) {
	if err := s.dropFork(context.Background(), env.ID); err != nil {
		s.Log.Error("cannot drop a fork that was not made, trying again", "id", env.ID, "error", err)
		s.finishLater(p, env.Owner)
	}
}

// dropFork removes a fork that was not answered, as if it had never been: first what was
// written of it, which has its uid.
func (s *Service) dropFork(ctx context.Context, id string) error {
	return s.Workspaces.Remove(ctx, id, func() {
		s.insist("drop a fork that was not made", id, func(ctx context.Context) error {
			return s.Store.DropEnvironment(ctx, id)
		})
	})
}
