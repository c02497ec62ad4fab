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
	s.beginRespite(environments)
	there, err := s.remains(ctx)
	if err != nil {
		return err
	}
	for _, m := range PlanMending(environments, there) {
		s.carryOut(ctx, m)
	}
	return nil
}

// remains looks for what there is beside the records.
func (s *Service) remains(ctx context.Context) (there Remains, err error) {
	if there.Folders, err = setOf("folders", s.Workspaces.IDs); err != nil {
		return there, err
	}
	if there.Archives, err = setOf("archives", s.Workspaces.ArchiveIDs); err != nil {
		return there, err
	}
	if there.Unreleased, err = s.Store.UnreleasedUIDs(ctx); err != nil {
		return there, fmt.Errorf("cannot read the uids of deleted environments: %w", err)
	}
	return there, nil
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
