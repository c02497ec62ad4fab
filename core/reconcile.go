package core

import (
	"context"
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
	folders, err := s.folders()
	if err != nil {
		return err
	}
	for _, env := range environments {
		s.mend(ctx, env, folders[env.ID])
		delete(folders, env.ID)
	}
	s.removeStrays(ctx, folders)
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

// folders gives the ids of all folders, as a set.
func (s *Service) folders() (map[string]bool, error) {
	ids, err := s.Workspaces.IDs()
	if err != nil {
		return nil, fmt.Errorf("cannot list the folders: %w", err)
	}
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set, nil
}

// mend brings one environment into a state that lasts.
func (s *Service) mend(ctx context.Context, env EnvironmentRecord, folder bool) {
	var what string
	var err error
	switch {
	case env.State == StateDeleting:
		what, err = "finished a deletion", s.remove(ctx, env)
	case env.State == StateResetting:
		what = "finished a reset"
		_, err = s.refill(ctx, env)
	case !folder:
		what, err = "made a missing folder", s.Workspaces.Create(ctx, env.ID, env.HostUID)
	default:
		return
	}
	if err != nil {
		s.Log.Error("cannot mend an environment", "id", env.ID, "state", env.State, "error", err)
		return
	}
	s.Log.Info(what, "id", env.ID)
}

// removeStrays removes the folders that no record knows.
func (s *Service) removeStrays(ctx context.Context, folders map[string]bool) {
	for id := range folders {
		if err := s.Workspaces.Remove(ctx, id, func() {}); err != nil {
			s.Log.Error("cannot remove a folder without a record", "id", id, "error", err)
			continue
		}
		s.Log.Info("removed a folder without a record", "id", id)
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
