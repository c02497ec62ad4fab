package core

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// Remains says what there is beside the records of environments.
type Remains struct {
	Folders  map[string]bool // by the id of their environment
	Archives map[string]bool // likewise
	// Unreleased are ids of deleted environments whose uid is not free yet.
	Unreleased []string
}

// Mending is one thing that a start does about what the service before it left undone.
type Mending struct {
	ID    string           // of the environment
	State EnvironmentState // of its record; "" where there is none
	// Will says in words what a start does, and Did is what it logs then. Both are ""
	// where it can do nothing.
	Will, Did string
	// Broken says why the environment cannot be used after that either, in words; else "".
	Broken string

	do func(context.Context, *Service) error // nil: nothing
}

// PlanMending says what a start does with what it finds, in the order in which it does
// it. It only thinks: whoever wants to know what a start would do asks the same code.
func PlanMending(environments []EnvironmentRecord, there Remains) []Mending {
	var plan []Mending
	folders, archives := maps.Clone(there.Folders), maps.Clone(there.Archives)
	for _, env := range environments {
		m := planFor(env, folders[env.ID], archives[env.ID])
		m.ID, m.State = env.ID, env.State
		if m.Will != "" || m.Broken != "" {
			plan = append(plan, m)
		}
		delete(folders, env.ID)
		delete(archives, env.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(folders)) {
		delete(archives, id) // the same removes it
		plan = append(plan, removeFolder(id))
	}
	for _, id := range slices.Sorted(maps.Keys(archives)) {
		plan = append(plan, removeArchive(id))
	}
	for _, id := range there.Unreleased {
		plan = append(plan, freeUID(id))
	}
	return plan
}

// planFor brings an environment into a state that lasts.
func planFor(env EnvironmentRecord, folder, archive bool) Mending {
	switch env.State {
	case StateDeleting:
		return Mending{Will: "finish a deletion", Did: "finished a deletion", do: func(ctx context.Context, s *Service) error {
			return s.orLater(env, s.remove(ctx, env))
		}}
	case StateResetting:
		return Mending{Will: "finish a reset", Did: "finished a reset", do: func(ctx context.Context, s *Service) error {
			_, err := s.refill(ctx, env)
			return s.orLater(env, err)
		}}
	case StateArchiving:
		m := returnTo(env, StateActive, nil, planActive(env, folder, archive))
		m.Will, m.Did = "take back the archiving of an environment", "took back the archiving of an environment"
		return m
	case StateRestoring:
		if env.Archive == nil {
			return Mending{Will: "drop a fork that was not made", Did: "dropped a fork that was not made", do: func(ctx context.Context, s *Service) error {
				return s.orLater(env, s.dropFork(ctx, env.ID))
			}}
		}
		m := returnTo(env, StateArchived, env.Archive, planArchived(env, folder, archive))
		m.Will, m.Did = "take back the restoring of an environment", "took back the restoring of an environment"
		return m
	case StateArchived:
		return planArchived(env, folder, archive)
	}
	return planActive(env, folder, archive)
}

// returnTo goes back to the state before a passing one, and then does what that needs.
func returnTo(env EnvironmentRecord, to EnvironmentState, archive *Archive, then Mending) Mending {
	return Mending{Broken: then.Broken, do: func(ctx context.Context, s *Service) error {
		if _, err := s.takeBack(ctx, env, env.State, to, archive); err != nil || then.do == nil {
			return err
		}
		return then.do(ctx, s)
	}}
}

// planActive has the folder be there, and the archive not. Where only that is there, which
// no crash brings about, it is not thrown away. A crash leaves neither of one that was just
// being created; of one that was used since, its files are lost, and an empty folder would
// say that there never were any.
func planActive(env EnvironmentRecord, folder, archive bool) Mending {
	switch {
	case folder && archive:
		return Mending{
			Will: "remove the archive of an active environment", Did: "removed the archive of an active environment",
			do: func(ctx context.Context, s *Service) error { return s.Workspaces.DropArchive(ctx, env.ID) },
		}
	case folder:
		return Mending{}
	case archive:
		return Mending{
			Will: "lay out the archive of an active environment without a folder", Did: "laid out the archive of an active environment without a folder",
			do: func(ctx context.Context, s *Service) error { return s.Workspaces.Unpack(ctx, env.ID, env.HostUID) },
		}
	case env.LastActivityAt.After(env.CreatedAt):
		return Mending{Broken: "its folder is missing, and its files with it"}
	}
	return Mending{Will: "make a missing folder", Did: "made a missing folder", do: func(ctx context.Context, s *Service) error {
		return s.Workspaces.Create(ctx, env.ID, env.HostUID)
	}}
}

// planArchived has the archive be there, and the folder not. Where only that is there,
// which no crash brings about, it is not thrown away.
func planArchived(env EnvironmentRecord, folder, archive bool) Mending {
	switch {
	case archive && folder:
		return Mending{
			Will: "remove the folder of an archived environment", Did: "removed the folder of an archived environment",
			do: func(ctx context.Context, s *Service) error { return s.Workspaces.Vacate(ctx, env.ID) },
		}
	case !archive:
		return Mending{Broken: "its archive is missing, and it cannot be restored"}
	}
	return Mending{}
}

func removeFolder(id string) Mending {
	return Mending{
		ID: id, Will: "remove a folder without a record", Did: "removed a folder without a record",
		do: func(ctx context.Context, s *Service) error { return s.Workspaces.Remove(ctx, id, func() {}) },
	}
}

func removeArchive(id string) Mending {
	return Mending{
		ID: id, Will: "remove an archive without a record", Did: "removed an archive without a record",
		do: func(ctx context.Context, s *Service) error { return s.Workspaces.DropArchive(ctx, id) },
	}
}

// freeUID frees the uid of a deleted environment once its files are gone.
func freeUID(id string) Mending {
	return Mending{
		ID: id, Will: "free what is left of a deleted environment, and its uid", Did: "frees what is left of a deleted environment, and its uid",
		do: func(ctx context.Context, s *Service) error {
			return s.Workspaces.Remove(ctx, id, func() { s.releaseUID(id) })
		},
	}
}

// carryOut does what was planned, and logs it. One thing that fails is left for the next
// start, and keeps nobody from the others.
func (s *Service) carryOut(ctx context.Context, m Mending) {
	var err error
	if m.do != nil {
		err = m.do(ctx, s)
	}
	if err == nil && m.Broken != "" {
		err = errors.New(m.Broken)
	}
	switch {
	case err != nil:
		s.Log.Error("cannot mend an environment", "id", m.ID, "state", m.State, "would", m.Will, "error", err)
	case m.Did != "":
		s.Log.Info(m.Did, "id", m.ID)
	}
}
