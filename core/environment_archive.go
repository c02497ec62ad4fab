package core

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The passing states of an environment that is archived and restored:
//
//	active ─▶ archiving ─▶ archived
//	archived ─▶ restoring ─▶ active
//
// The folder is the truth until the state is archived, and the archive from then until
// the state is active again; what is not the truth is removed after that. So what a
// crash or an error cuts short is taken back, since nothing was lost by then.

// ArchiveEnvironment kills everything in an environment, packs its folder and frees the
// space of that. One that is archived already is answered as it is. It fails with
// `not_found`, `environment_busy`, `quota_exceeded`, `disk_full` or `unavailable`; then
// it is active, and nothing runs in it any more unless it was the quota.
func (s *Service) ArchiveEnvironment(ctx context.Context, c Caller, in EnvironmentRef) (Environment, error) {
	return s.passAlone(ctx, c, in.EnvironmentID, StateArchiving, s.archive)
}

// RestoreEnvironment lays an archived environment out again, bit for bit. One that is
// active is answered as it is. It fails with `not_found`, `environment_busy`,
// `quota_exceeded`, `disk_full` or `unavailable`; then it is still archived.
func (s *Service) RestoreEnvironment(ctx context.Context, c Caller, in EnvironmentRef) (Environment, error) {
	return s.passAlone(ctx, c, in.EnvironmentID, StateRestoring, s.restore)
}

// passAlone brings an environment through a passing state that nothing but the end of
// the service cuts short.
func (s *Service) passAlone(ctx context.Context, c Caller, id string, state EnvironmentState, do func(context.Context, *place, Owner) (EnvironmentRecord, error)) (Environment, error) {
	if err := s.begin(); err != nil {
		return Environment{}, err
	}
	defer s.done()
	if _, err := s.ownEnvironment(ctx, c.Owner, id); err != nil {
		return Environment{}, err // before the place is taken: nobody can hold up another's
	}
	p := s.hold(id)
	defer s.letGo(p)
	if err := s.pass(ctx, p, state); err != nil {
		return Environment{}, err
	}
	during, cancel := s.untilClosing(ctx)
	defer cancel()
	env, err := do(during, p, c.Owner)
	if state == StateRestoring {
		p.settle(err)
	} else {
		p.settle(nil)
	}
	if err != nil {
		return Environment{}, err
	}
	return s.environment(ctx, env)
}

// archive archives an environment whose place the caller has, unless it is.
func (s *Service) archive(ctx context.Context, p *place, o Owner) (EnvironmentRecord, error) {
	env, err := s.ownEnvironment(ctx, o, p.id)
	if err != nil || env.State == StateArchived {
		return env, err
	}
	release, err := s.passages.take(ctx, o.Account, maxPassages)
	if err != nil {
		return env, s.cutShort(err)
	}
	defer release()
	env, err = s.beginArchiving(ctx, p, o, func(EnvironmentRecord) error { return nil })
	if err != nil {
		return env, err
	}
	return s.pack(ctx, p, env)
}

// beginArchiving counts the environment against the quota before anything is ended: who
// has no room for an archive loses nothing. May can refuse.
func (s *Service) beginArchiving(ctx context.Context, p *place, o Owner, may func(EnvironmentRecord) error) (EnvironmentRecord, error) {
	env, err := s.Store.TurnEnvironment(context.WithoutCancel(ctx), o, p.id, s.quota(), func(env *EnvironmentRecord) error {
		if env.State != StateActive && env.State != StateArchiving {
			return busy(env.State)
		}
		env.State = StateArchiving
		return may(*env)
	})
	return env, missing(err, "environment", p.id)
}

// pack does what archiving is, or takes it back.
func (s *Service) pack(ctx context.Context, p *place, env EnvironmentRecord) (EnvironmentRecord, error) {
	archived, err := s.packInto(ctx, p, env)
	if err != nil {
		s.unarchive(env)
		return env, s.cutShort(err)
	}
	s.vacate(env.ID)
	s.disk.forget(env.ID)
	return archived, nil
}

// packInto ends what runs and packs the folder. When it returns without an error the
// archive is the truth.
func (s *Service) packInto(ctx context.Context, p *place, env EnvironmentRecord) (EnvironmentRecord, error) {
	if err := firstError(ctx.Err(), s.hasPart(packPart)); err != nil {
		return env, err // nothing need be ended for that
	}
	left, err := s.endAll(p, doom{status: CommandKilled, reason: ReasonEnvironmentArchived})
	if err != nil {
		return env, err
	}
	if err := vacated(context.WithoutCancel(ctx), env.ID, left); err != nil {
		return env, err
	}
	var archive Archive
	err = s.whileSpace(ctx, packPart, func(ctx context.Context) (err error) {
		archive, err = s.Workspaces.Pack(ctx, env.ID, env.HostUID)
		return err
	})
	if err != nil {
		return env, fmt.Errorf("cannot pack the folder of %s: %w", env.ID, err)
	}
	if err := ctx.Err(); err != nil {
		return env, err
	}
	archive.At = s.now()
	return s.Store.UpdateEnvironment(context.WithoutCancel(ctx), env.Owner, env.ID, func(env *EnvironmentRecord) error {
		env.State, env.Archive = StateArchived, &archive
		return nil
	})
}

// unarchive takes back what archiving has done.
func (s *Service) unarchive(env EnvironmentRecord) {
	after, taken := env, false
	s.insist("take back the archiving of an environment", env.ID, func(ctx context.Context) (err error) {
		after, err = s.takeBack(ctx, env, StateArchiving, StateActive, nil)
		taken = err == nil
		return err
	})
	if taken && after.State == StateActive {
		s.dropArchive(env.ID)
	}
}

// takeBack brings an environment from a passing state back to the one before, with what
// archive it had then. Where it is in another state, the change that seemed to fail was
// made all the same, and stands.
func (s *Service) takeBack(ctx context.Context, env EnvironmentRecord, from, to EnvironmentState, archive *Archive) (EnvironmentRecord, error) {
	return s.Store.UpdateEnvironment(ctx, env.Owner, env.ID, func(env *EnvironmentRecord) error {
		if env.State == from {
			env.State, env.Archive = to, archive
		}
		return nil
	})
}

// vacate removes a folder that is not the truth. Where that fails the next start does it.
func (s *Service) vacate(id string) {
	if err := s.Workspaces.Vacate(context.Background(), id); err != nil {
		s.Log.Error("cannot remove the folder of an archived environment", "id", id, "error", err)
	}
}

// dropArchive removes an archive that is not the truth. Where that fails the next start
// does it.
func (s *Service) dropArchive(id string) {
	if err := s.Workspaces.DropArchive(context.Background(), id); err != nil {
		s.Log.Error("cannot remove an archive that is of no use any more", "id", id, "error", err)
	}
}

// cutShort says it of what failed because the service stops.
func (s *Service) cutShort(err error) error {
	if err != nil && isClosed(s.closing) {
		return stopping().Because(err)
	}
	return err
}

// restore restores an environment whose place the caller has, unless it is active. That
// is a use of it: it is not archived again at once.
func (s *Service) restore(ctx context.Context, p *place, o Owner) (EnvironmentRecord, error) {
	env, err := s.ownEnvironment(ctx, o, p.id)
	if err != nil || env.State == StateActive {
		return env, err
	}
	release, err := s.passages.take(ctx, o.Account, maxPassages)
	if err != nil {
		return env, s.cutShort(err)
	}
	defer release()
	if err := firstError(s.usable(ctx, env), s.hasSpace()); err != nil {
		return env, err
	}
	env, err = s.Store.TurnEnvironment(context.WithoutCancel(ctx), o, p.id, s.quota(), func(env *EnvironmentRecord) error {
		if env.Archive == nil || env.State != StateArchived && env.State != StateRestoring {
			return busy(env.State)
		}
		env.State, env.LastActivityAt = StateRestoring, s.now()
		return nil
	})
	if err != nil {
		return env, notActivated(p.id, missing(err, "environment", p.id))
	}
	restored, err := s.unpack(ctx, env)
	if err != nil {
		s.unrestore(env)
		return env, s.cutShort(err)
	}
	s.dropArchive(env.ID)
	s.disk.forget(env.ID)
	return restored, nil
}

// notActivated says of a refusal that it was one to make an archived environment active:
// who only wanted to run a command, or to read a file, could not know what the number of
// environments has to do with that.
func notActivated(id string, err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeQuotaExceeded {
		return err
	}
	told := *e
	told.Detail = fmt.Sprintf("environment %q is archived, and this would make it active: %s", id, e.Detail)
	return &told
}

// unpack makes the folder, and then that the truth.
func (s *Service) unpack(ctx context.Context, env EnvironmentRecord) (EnvironmentRecord, error) {
	err := s.whileSpace(ctx, 1, func(ctx context.Context) error { return s.Workspaces.Unpack(ctx, env.ID, env.HostUID) })
	if err != nil {
		return env, fmt.Errorf("cannot lay out the archive of %s: %w", env.ID, err)
	}
	return s.Store.UpdateEnvironment(context.WithoutCancel(ctx), env.Owner, env.ID, func(env *EnvironmentRecord) error {
		env.State, env.Archive = StateActive, nil
		return nil
	})
}

// unrestore takes back what restoring has done.
func (s *Service) unrestore(env EnvironmentRecord) {
	after, taken := env, false
	s.insist("take back the restoring of an environment", env.ID, func(ctx context.Context) (err error) {
		after, err = s.takeBack(ctx, env, StateRestoring, StateArchived, env.Archive)
		taken = err == nil
		return err
	})
	if taken && after.State == StateArchived {
		s.vacate(env.ID)
	}
}

// errInUse is that an environment is not idle.
var errInUse = errors.New("the environment is in use")

// archiveIdle archives an environment that was not used after since, and says whether it
// did. It gives way: who wants to use the environment before it is archived ends this,
// and finds it active; the shells that waited to be used may be closed by then. Whoever
// comes later restores it.
func (s *Service) archiveIdle(ctx context.Context, env EnvironmentRecord, since time.Time) (done bool, err error) {
	if err := s.begin(); err != nil {
		return false, err
	}
	defer s.done()
	p := s.hold(env.ID)
	defer s.letGo(p)
	ctx, giveWay := context.WithCancel(ctx)
	defer giveWay()
	if s.usedSince(ctx, env.ID, since) || !p.tryPass(StateArchiving, giveWay) {
		return false, nil
	}
	defer p.settle(nil)
	if s.usedSince(ctx, env.ID, since) { // nobody can come unseen from here on
		return false, nil
	}
	env, err = s.beginArchiving(ctx, p, env.Owner, func(env EnvironmentRecord) error {
		if env.LastActivityAt.After(since) {
			return errInUse
		}
		return nil
	})
	if err == nil {
		_, err = s.pack(ctx, p, env)
	}
	if errors.Is(err, errInUse) || hasCode(err, CodeNotFound) || ctx.Err() != nil {
		return false, nil
	}
	return err == nil, err
}

// usedSince says whether something runs in an environment, or it was used after since,
// as far as the store does not know it.
func (s *Service) usedSince(ctx context.Context, id string, since time.Time) bool {
	return s.lastUsed(id).After(since) || s.hasWork(ctx, id)
}
