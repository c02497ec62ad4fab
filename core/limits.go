package core

import (
	"cmp"
	"fmt"
	"time"

	"envapi/sandbox"
)

// Limits are the quotas and caps of the deployment.
type Limits struct {
	EnvironmentsPerAccount int
	EnvironmentsPerProfile int
	ArchivedEnvironments   int   // of an account
	TerminalsPerAccount    int   // open at one time, of shells and of commands
	RequestsPerSecond      int   // of an account; 0: as many as come. The doors hold it, here it is told
	Shells                 int   // open ones, per environment, as all that follow
	RunningCommands        int   // those that wait in line in a shell included
	Processes              int   // at one time
	MemoryBytes            int64 // of all processes
	DiskBytes              int64 // of the folder, and of its longest file
	Files                  int64 // entries of the folder
	CPUPercent             int   // of one core; 0: no more than a fair share

	// FreeDiskBytes is what must stay free on the host's disk: below it, who
	// fills the disk is stopped. 0: a part of the disk (reserved).
	FreeDiskBytes int64

	// ETagBytes is up to which size a file's ETag is shown without being asked
	// for, since it must be read for that. 0: 256 MiB.
	ETagBytes int64

	DefaultTimeout time.Duration // of a command, where the caller names none
	MaxTimeout     time.Duration // of a command
}

// check refuses limits that are not set or useless.
func (l Limits) check() error {
	for name, limit := range map[string]struct{ is, least int64 }{
		limitEnvironmentsPerAccount: {int64(l.EnvironmentsPerAccount), 1},
		limitEnvironmentsPerProfile: {int64(l.EnvironmentsPerProfile), 1},
		limitArchivedEnvironments:   {int64(l.ArchivedEnvironments), 1},
		limitTerminalsPerAccount:    {int64(l.TerminalsPerAccount), 1},
		limitRequestsPerSecond:      {int64(l.RequestsPerSecond), 0},
		limitShells:                 {int64(l.Shells), 1},
		limitRunningCommands:        {int64(l.RunningCommands), 1},
		limitProcesses:              {int64(l.Processes), MinProcesses},
		limitMemoryBytes:            {l.MemoryBytes, MinMemoryBytes},
		limitDiskBytes:              {l.DiskBytes, MinDiskBytes},
		limitFiles:                  {l.Files, MinFiles},
		"cpu_percent":               {int64(l.CPUPercent), 0},
		"free_disk_bytes":           {l.FreeDiskBytes, 0},
		"etag_bytes":                {l.ETagBytes, 0},
		"default_timeout":           {int64(l.DefaultTimeout), 1},
		"max_timeout":               {int64(l.MaxTimeout), 1},
	} {
		if limit.is < limit.least {
			return fmt.Errorf("the limit %s is %d: it must be at least %d", name, limit.is, limit.least)
		}
	}
	return nil
}

// The least that an environment may be limited to: with less there is no use in
// it, only riddles.
const (
	// MinProcesses is a shell and some programs: with two or three a shell waits
	// seconds for each program that it cannot start.
	MinProcesses = 16
	// MinMemoryBytes is a shell, an interpreter and what contains them.
	MinMemoryBytes = 64 << 20
	MinDiskBytes   = 1 << 20
	MinFiles       = 16
)

// Caps that are part of the contract and no setting.
const (
	// MaxWait is how long a call waits at most: below the minute after which
	// common clients give up.
	MaxWait = 45 * time.Second
	// MaxCommandBytes bounds the script of a command.
	MaxCommandBytes = 1 << 20
	// MaxStdinBytes bounds the standard input given with exec, which is held
	// in memory while the command runs.
	MaxStdinBytes = 8 << 20
	// MaxInputBytes bounds what is written to a running program in one call.
	MaxInputBytes = 1 << 20
)

// retryAfter is when a caller may try again what is busy or unavailable: most
// passing states last less.
const retryAfter = 500 * time.Millisecond

// The names of limits, the same in errors, inputs, usage and settings.
const (
	limitEnvironmentsPerAccount = "environments_per_account"
	limitEnvironmentsPerProfile = "environments_per_profile"
	limitArchivedEnvironments   = "archived_environments"
	limitTerminalsPerAccount    = "terminals_per_account"
	limitRequestsPerSecond      = "requests_per_second"
	limitShells                 = "shells"
	limitRunningCommands        = "running_commands"
	limitProcesses              = "processes"
	limitMemoryBytes            = "memory_bytes"
	limitDiskBytes              = "disk_bytes"
	limitFiles                  = "files"
)

// boxLimits are the limits that hold for one environment.
type boxLimits struct {
	Shells, RunningCommands       int
	Processes                     int
	MemoryBytes, DiskBytes, Files int64
	CPUPercent                    int
}

// limitsOf gives an environment's own limits, and the deployment's where it has
// none or they were lowered since.
func (s *Service) limitsOf(env EnvironmentRecord) boxLimits {
	return boxLimits{
		Shells:          lowered(s.Limits.Shells, env.Limits.Shells),
		RunningCommands: lowered(s.Limits.RunningCommands, env.Limits.RunningCommands),
		Processes:       lowered(s.Limits.Processes, env.Limits.Processes),
		MemoryBytes:     lowered(s.Limits.MemoryBytes, env.Limits.MemoryBytes),
		DiskBytes:       lowered(s.Limits.DiskBytes, env.Limits.DiskBytes),
		Files:           lowered(s.Limits.Files, env.Limits.Files),
		CPUPercent:      s.Limits.CPUPercent,
	}
}

func lowered[N cmp.Ordered](deployment N, own *N) N {
	if own == nil {
		return deployment
	}
	return min(deployment, *own)
}

// ofBox is what the sandbox is to enforce of them. A single file is stopped by
// the system where the whole folder's limit is; the folder by the disk watch.
func (l boxLimits) ofBox() sandbox.Limits {
	return sandbox.Limits{
		Processes: l.Processes, MemoryBytes: l.MemoryBytes,
		CPUPercent: l.CPUPercent, FileBytes: l.DiskBytes,
	}
}

// check refuses limits that are useless or above the deployment's.
func (l EnvironmentLimits) check(deployment Limits) error {
	return firstError(
		checkLimit(limitShells, l.Shells, 1, deployment.Shells),
		checkLimit(limitRunningCommands, l.RunningCommands, 1, deployment.RunningCommands),
		checkLimit(limitProcesses, l.Processes, MinProcesses, deployment.Processes),
		checkLimit(limitMemoryBytes, l.MemoryBytes, MinMemoryBytes, deployment.MemoryBytes),
		checkLimit(limitDiskBytes, l.DiskBytes, MinDiskBytes, deployment.DiskBytes),
		checkLimit(limitFiles, l.Files, MinFiles, deployment.Files),
	)
}

func checkLimit[N int | int64](name string, own *N, least, deployment N) error {
	if own == nil || *own >= least && *own <= deployment {
		return nil
	}
	return invalid("limits."+name, "limits.%s is %d: give %d to %d, which is the deployment's limit", name, *own, least, deployment)
}

// over gives the limits with those of other in their place, where it has any.
func (l EnvironmentLimits) over(other EnvironmentLimits) EnvironmentLimits {
	return EnvironmentLimits{
		Shells:          cmp.Or(other.Shells, l.Shells),
		RunningCommands: cmp.Or(other.RunningCommands, l.RunningCommands),
		Processes:       cmp.Or(other.Processes, l.Processes),
		MemoryBytes:     cmp.Or(other.MemoryBytes, l.MemoryBytes),
		DiskBytes:       cmp.Or(other.DiskBytes, l.DiskBytes),
		Files:           cmp.Or(other.Files, l.Files),
	}
}

// used is a count against its limit.
func used[N, L int | int64](count N, allowed L) Usage {
	c, a := int64(count), int64(allowed)
	return Usage{Used: &c, Allowed: &a}
}

// uncounted is a limit against which nothing was counted.
func uncounted[L int | int64](allowed L) Usage {
	a := int64(allowed)
	return Usage{Allowed: &a}
}
