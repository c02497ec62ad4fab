package core

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// reconcile finishes what the service before this one left undone, before any
// call is answered, and logs what it mended. It fails where the store cannot be
// read; one environment that cannot be mended is left for a later try and keeps
// nobody from the others.
func (s *Service) reconcile(ctx context.Context) error {
	lost, err := s.Store.LoseRunning(ctx, lostEnd(s.now(), false), lostEnd(s.now(), true))
	if err != nil {
		return fmt.Errorf("cannot mark the commands that ran before as lost: %w", err)
	}
	if lost > 0 {
		s.Log.Info("commands of the service before this one are lost", "count", lost)
	}
	closed, err := s.Store.CloseShells(ctx, s.now(), CloseServiceRestarted)
	if err != nil {
		return fmt.Errorf("cannot close the shells that were open before: %w", err)
	}
	if closed > 0 {
		s.Log.Info("shells of the service before this one are closed", "count", closed)
	}
	environments, err := s.Store.AllEnvironments(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the environments: %w", err)
	}
	s.beginRespite(environments)
	folders, err := setOf("folders", s.Workspaces.IDs)
	if err != nil {
		return err
	}
	archives, err := setOf("archives", s.Workspaces.ArchiveIDs)
	if err != nil {
		return err
	}
	for _, env := range environments {
		s.mend(ctx, env, remains{folders[env.ID], archives[env.ID]})
		delete(folders, env.ID)
		delete(archives, env.ID)
	}
	s.removeStrays(ctx, folders, archives)
	return s.releaseUIDs(ctx)
}

// lostEnd is the end of a command that ran when the service was killed, the same as
// where it is stopped in good order.
func lostEnd(at time.Time, inShell bool) CommandEnd {
	end := CommandEnd{Status: CommandLost, Reason: ReasonServiceStopped, Advice: adviceStopped, ShellClosed: inShell, EndedAt: &at}
	if inShell {
		end.Advice += " " + adviceShellEnded
	}
	return end
}

// setOf gives the ids of all folders, or of all archives.
func setOf(what string, list func() ([]string, error)) (map[string]bool, error) {
	ids, err := list()
	if err != nil {
		return nil, fmt.Errorf("cannot list the %s: %w", what, err)
	}
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set, nil
}

// remains says what there is of an environment beside its record.
type remains struct{ folder, archive bool }

// mend brings one environment into a state that lasts.
func (s *Service) mend(ctx context.Context, env EnvironmentRecord, there remains) {
	what, err := s.finishOrTakeBack(ctx, env, there)
	switch {
	case err != nil:
		s.Log.Error("cannot mend an environment", "id", env.ID, "state", env.State, "error", err)
	case what != "":
		s.Log.Info(what, "id", env.ID)
	}
}

// finishOrTakeBack says what it mended, or "".
func (s *Service) finishOrTakeBack(ctx context.Context, env EnvironmentRecord, there remains) (what string, err error) {
	switch env.State {
	case StateDeleting:
		return "finished a deletion", s.remove(ctx, env)
	case StateResetting:
		_, err = s.refill(ctx, env)
		return "finished a reset", err
	case StateArchiving:
		if env, err = s.takeBack(ctx, env, StateArchiving, StateActive, nil); err == nil {
			_, err = s.mendActive(ctx, env, there)
		}
		return "took back the archiving of an environment", err
	case StateRestoring:
		if env.Archive == nil {
			s.dropFork(env.ID)
			return "dropped a fork that was not made", nil
		}
		if env, err = s.takeBack(ctx, env, StateRestoring, StateArchived, env.Archive); err == nil {
			_, err = s.mendArchived(ctx, env, there)
		}
		return "took back the restoring of an environment", err
	case StateArchived:
		return s.mendArchived(ctx, env, there)
	}
	return s.mendActive(ctx, env, there)
}

// mendActive has the folder be there, and the archive not. Where only that is there, which
// no crash brings about, it is not thrown away.
func (s *Service) mendActive(ctx context.Context, env EnvironmentRecord, there remains) (what string, err error) {
	switch {
	case there.folder && there.archive:
		return "removed the archive of an active environment", s.Workspaces.DropArchive(ctx, env.ID)
	case there.folder:
		return "", nil
	case there.archive:
		return "laid out the archive of an active environment without a folder", s.Workspaces.Unpack(ctx, env.ID, env.HostUID)
	}
	return "made a missing folder", s.Workspaces.Create(ctx, env.ID, env.HostUID)
}

// mendArchived has the archive be there, and the folder not. Where only that is there,
// which no crash brings about, it is not thrown away.
func (s *Service) mendArchived(ctx context.Context, env EnvironmentRecord, there remains) (what string, err error) {
	switch {
	case there.archive && there.folder:
		return "removed the folder of an archived environment", s.Workspaces.Vacate(ctx, env.ID)
	case !there.archive:
		return "", errors.New("its archive is missing, and it cannot be restored")
	}
	return "", nil
}

// removeStrays removes the folders and archives that no record knows.
func (s *Service) removeStrays(ctx context.Context, folders, archives map[string]bool) {
	for id := range folders {
		delete(archives, id)
		if err := s.Workspaces.Remove(ctx, id, func() {}); err != nil {
			s.Log.Error("cannot remove a folder without a record", "id", id, "error", err)
			continue
		}
		s.Log.Info("removed a folder without a record", "id", id)
	}
	for id := range archives {
		if err := s.Workspaces.DropArchive(ctx, id); err != nil {
			s.Log.Error("cannot remove an archive without a record", "id", id, "error", err)
			continue
		}
		s.Log.Info("removed an archive without a record", "id", id)
	}
}

// releaseUIDs frees the uids of deleted environments once their files are gone.
func (s *Service) releaseUIDs(ctx context.Context) error {
	ids, err := s.Store.UnreleasedUIDs(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the uids of deleted environments: %w", err)
	}
	for _, id := range ids {
		if err := s.Workspaces.Remove(ctx, id, func() { s.releaseUID(id) }); err != nil {
			s.Log.Error("cannot remove what is left of a deleted environment", "id", id, "error", err)
		}
	}
	return nil
}
