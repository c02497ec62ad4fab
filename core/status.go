package core

import (
	"context"
	"fmt"
)

// GetStatus says who the caller is, what they use and may use, and what
// contains it.
func (s *Service) GetStatus(ctx context.Context, c Caller, _ Nothing) (Status, error) {
	count, err := s.Store.CountEnvironments(ctx, c.Owner)
	if err != nil {
		return Status{}, fmt.Errorf("cannot count environments: %w", err)
	}
	return Status{
		Account: c.Account,
		Profile: c.Profile,
		Scopes:  c.Scopes,
		Usage: AccountUsage{
			EnvironmentsPerAccount: used(count.PerAccount, s.Limits.EnvironmentsPerAccount),
			EnvironmentsPerProfile: used(count.PerProfile, s.Limits.EnvironmentsPerProfile),
			ArchivedEnvironments:   used(count.Archived, s.Limits.ArchivedEnvironments),
			TerminalsPerAccount:    used(s.terminals.of(c.Account), s.Limits.TerminalsPerAccount),
		},
		Limits: StatusLimits{
			RequestsPerSecond: s.Limits.RequestsPerSecond,
			Shells:            s.Limits.Shells,
			RunningCommands:   s.Limits.RunningCommands,
			Processes:         s.Limits.Processes,
			MemoryBytes:       s.Limits.MemoryBytes,
			CPUPercent:        s.Limits.CPUPercent,
			DiskBytes:         s.Limits.DiskBytes,
			Files:             s.Limits.Files,
			MaxWaitMS:         MaxWait.Milliseconds(),
			DefaultTimeoutMS:  min(s.Limits.DefaultTimeout, s.Limits.MaxTimeout).Milliseconds(),
			MaxTimeoutMS:      s.Limits.MaxTimeout.Milliseconds(),
		},
		Sandbox: s.Report(),
	}, nil
}
