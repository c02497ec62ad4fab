package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"envapi/sandbox"
)

// usageBound is how long the counts of an environment may take before they are
// answered as null.
const usageBound = time.Second

// defaultName is the name of a local caller's default environment.
const defaultName = "default"

// GetEnvironment gives an environment with what it uses. It fails with
// `not_found`.
func (s *Service) GetEnvironment(ctx context.Context, c Caller, in EnvironmentRef) (Environment, error) {
	env, err := s.ownEnvironment(ctx, c.Owner, in.EnvironmentID)
	if err != nil {
		return Environment{}, err
	}
	return s.environment(ctx, env)
}

// ListEnvironments gives a page of the caller's environments, newest first.
// What only a walk through the folders could count is null here, and what boxes
// do not say in time, so that a list always answers at once.
func (s *Service) ListEnvironments(ctx context.Context, c Caller, in ListEnvironmentsInput) (Page[Environment], error) {
	var err error
	if in.Paging, err = in.sized(); err != nil {
		return Page[Environment]{}, err
	}
	records, next, err := s.Store.ListEnvironments(ctx, c.Owner, in)
	if err != nil {
		return Page[Environment]{}, fmt.Errorf("cannot list environments: %w", err)
	}
	page := Page[Environment]{Items: make([]Environment, len(records)), NextCursor: next}
	counting, cancel := context.WithTimeout(ctx, usageBound)
	defer cancel()
	for i, record := range records {
		if page.Items[i], err = s.summary(ctx, counting, record); err != nil {
			return Page[Environment]{}, err
		}
	}
	return page, nil
}

// UpdateEnvironment changes what is given and leaves the rest. It fails with
// `not_found`, `invalid_argument` or `environment_busy`.
func (s *Service) UpdateEnvironment(ctx context.Context, c Caller, in UpdateEnvironmentInput) (Environment, error) {
	if err := in.check(s.Limits); err != nil {
		return Environment{}, err
	}
	if err := s.begin(); err != nil {
		return Environment{}, err
	}
	defer s.done()
	env, err := s.Store.UpdateEnvironment(ctx, c.Owner, in.EnvironmentID, func(env *EnvironmentRecord) error {
		if env.State == StateResetting || env.State == StateDeleting {
			return busy(env.State)
		}
		in.apply(env)
		return nil
	})
	if err != nil {
		return Environment{}, missing(err, "environment", in.EnvironmentID)
	}
	return s.environment(ctx, env)
}

func (in UpdateEnvironmentInput) apply(env *EnvironmentRecord) {
	if in.Name != nil {
		env.Name = *in.Name
	}
	if in.Labels != nil {
		env.Labels = *in.Labels
	}
	if in.Limits != nil {
		env.Limits = env.Limits.over(*in.Limits)
	}
	if in.IdleMS != nil {
		env.Idle = idleTime(*in.IdleMS)
	}
}

// ownEnvironment gives the record of one of o's environments.
func (s *Service) ownEnvironment(ctx context.Context, o Owner, id string) (EnvironmentRecord, error) {
	env, err := s.Store.Environment(ctx, o, id)
	return env, missing(err, "environment", id)
}

// whereToRun gives the id of the environment that a call names. Only a local
// caller may name none: that is the newest one called "default", made on first
// use.
func (s *Service) whereToRun(ctx context.Context, c Caller, id string) (string, error) {
	if id != "" {
		return id, nil
	}
	if !c.Local {
		return "", invalid("environment_id", "environment_id is missing: give the id of one of your environments, or create one first")
	}
	s.defaults.Lock() // this process alone works on the data folder: that suffices to make one only
	defer s.defaults.Unlock()
	named, _, err := s.Store.ListEnvironments(ctx, c.Owner, ListEnvironmentsInput{Name: defaultName, Paging: Paging{Limit: 1}})
	if err != nil {
		return "", fmt.Errorf("cannot look for the default environment: %w", err)
	}
	if len(named) > 0 {
		return named[0].ID, nil
	}
	made, err := s.create(ctx, c.Owner, CreateEnvironmentInput{Name: defaultName}, Idempotency{})
	return made.ID, err
}

// environment shows a record with everything that the environment uses.
func (s *Service) environment(ctx context.Context, env EnvironmentRecord) (Environment, error) {
	counting, cancel := context.WithTimeout(ctx, usageBound)
	defer cancel()
	shown, err := s.summary(ctx, counting, env)
	if err != nil {
		return Environment{}, err
	}
	if env.Archive != nil {
		return shown, nil // it holds what its archive does
	}
	bytes, files, err := s.Workspaces.Usage(counting, env.ID, s.temporary(env.ID))
	if err == nil {
		shown.Usage.DiskBytes.Used, shown.Usage.Files.Used = &bytes, &files
	}
	return shown, nil
}

// summary shows a record with the counts that are cheap. What is not the store's
// is counted until counting is over.
func (s *Service) summary(ctx, counting context.Context, env EnvironmentRecord) (Environment, error) {
	running, err := s.Store.CountRunning(ctx, env.ID)
	if err != nil {
		return Environment{}, fmt.Errorf("cannot count the commands of %s: %w", env.ID, err)
	}
	shells, err := s.Store.CountShells(ctx, env.ID)
	if err != nil {
		return Environment{}, fmt.Errorf("cannot count the shells of %s: %w", env.ID, err)
	}
	limits := s.limitsOf(env)
	shown := Environment{
		ID:             env.ID,
		Name:           env.Name,
		Labels:         env.Labels,
		State:          env.State,
		WorkspacePath:  s.workspacePath(env.ID),
		SandboxTier:    string(s.Sandbox.Tier()),
		CreatedAt:      At(env.CreatedAt),
		LastActivityAt: At(s.lastActivity(env)),
		IdleMS:         s.ownIdle(env),
	}
	if running == 0 {
		shown.ArchivesAt = s.archivesAt(ctx, env)
	}
	if shown.Labels == nil {
		shown.Labels = map[string]string{}
	}
	shown.Usage = s.boxUsage(counting, env.ID, limits)
	shown.Usage.Shells = used(shells, limits.Shells)
	shown.Usage.RunningCommands = used(running, limits.RunningCommands)
	shown.Usage.DiskBytes, shown.Usage.Files = uncounted(limits.DiskBytes), uncounted(limits.Files)
	if a := env.Archive; a != nil {
		at := At(a.At)
		shown.ArchivedAt, shown.ArchiveBytes = &at, &a.Bytes
		shown.Usage.DiskBytes, shown.Usage.Files = used(a.Content.Bytes, limits.DiskBytes), used(a.Content.Files, limits.Files)
	}
	return shown, nil
}

// boxUsage says what the processes of an environment use: nothing where it has
// no box, null where the box does not say, or not in time.
func (s *Service) boxUsage(ctx context.Context, id string, limits boxLimits) EnvironmentUsage {
	box := s.boxOf(id)
	if box == nil {
		return EnvironmentUsage{Processes: used(0, limits.Processes), MemoryBytes: used(0, limits.MemoryBytes)}
	}
	usage := EnvironmentUsage{Processes: uncounted(limits.Processes), MemoryBytes: uncounted(limits.MemoryBytes)}
	if now, err := box.Usage(ctx); err == nil {
		usage.Processes = used(now.Processes, limits.Processes)
		usage.MemoryBytes.Used = now.MemoryBytes
	}
	return usage
}

// boxOf gives the box of an environment, or nil where it has none.
func (s *Service) boxOf(id string) sandbox.Box {
	if o := s.openIn(id); o != nil {
		return o.box
	}
	return nil
}

// temporary is where the commands of an environment have their temporary files
// on disk, or "".
func (s *Service) temporary(id string) string {
	if box := s.boxOf(id); box != nil {
		return box.Temporary()
	}
	return ""
}

// openIn is boxOf with all that is known of it.
func (s *Service) openIn(id string) *opening {
	s.mu.Lock()
	p := s.places[id]
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.live()
}

// workspacePath is where the commands of an environment see its folder.
func (s *Service) workspacePath(id string) string {
	return s.Sandbox.WorkspacePath(s.Workspaces.Path(id))
}

// missing turns ErrNoRecord into `not_found`.
func missing(err error, kind, id string) error {
	if errors.Is(err, ErrNoRecord) {
		return NotFound(kind, id)
	}
	return err
}

// busy says that an environment is in a passing state.
func busy(state EnvironmentState) *Error {
	return Errorf(CodeEnvironmentBusy, "the environment is %s: try again in a moment", state).
		With("state", string(state)).
		With("retry_after_ms", retryAfter.Milliseconds())
}
