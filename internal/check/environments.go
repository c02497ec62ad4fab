package check

import (
	"fmt"
	"os"

	"envapi/core"
	"envapi/internal/workspace"
)

// environments compares the records with the folders and archives, as a start does.
func (c *checker) environments() error {
	store := c.exam.Store
	if err := c.running(); err != nil {
		return err
	}
	all, err := store.AllEnvironments(c.ctx)
	if err != nil {
		return err
	}
	c.report.Environments = len(all)
	unreleased, err := store.UnreleasedUIDs(c.ctx)
	if err != nil {
		return err
	}
	plan := core.PlanMending(all, core.Remains{
		Folders: idsOf(c.survey.Folders), Archives: idsOf(c.survey.Archives), Unreleased: unreleased,
	})
	for _, m := range plan {
		c.mending(m)
	}
	if err := c.uids(all); err != nil {
		return err
	}
	for _, env := range all {
		c.folder(env)
		if err := c.archive(env); err != nil {
			return err
		}
	}
	return nil
}

func idsOf(all map[string]workspace.Owned) map[string]bool {
	ids := make(map[string]bool, len(all))
	for id := range all {
		ids[id] = true
	}
	return ids
}

// running does to the copy what a start does to the records, and says how much it was.
func (c *checker) running() error {
	commands, err := c.exam.Store.LoseRunning(c.ctx, lost(), lost())
	if err != nil {
		return err
	}
	if commands > 0 {
		c.report.add(Finding{
			Level: Mends, What: database, Says: fmt.Sprintf("%d commands ran when the service ended", commands),
			Then: "a start records them as lost", Logs: "commands of the service before this one are lost",
		})
	}
	shells, err := c.exam.Store.CloseShells(c.ctx, *lost().EndedAt, core.CloseServiceRestarted)
	if err != nil {
		return err
	}
	if shells > 0 {
		c.report.add(Finding{
			Level: Mends, What: database, Says: fmt.Sprintf("%d shells were open when the service ended", shells),
			Then: "a start records them as closed", Logs: "shells of the service before this one are closed",
		})
	}
	return nil
}

// mending reports one thing that a start does, or cannot do.
func (c *checker) mending(m core.Mending) {
	f := Finding{Level: Mends, What: m.ID, Says: "its state is " + string(m.State), Logs: m.Did}
	if m.State == "" {
		f.Says = "there is no record of it"
	}
	if m.Will != "" {
		f.Then = "a start will " + m.Will
	}
	if m.Broken != "" {
		f.Level, f.Logs = Damaged, "cannot mend an environment"
		f.Says += ", and " + m.Broken
		f.Then = "bring it back from a backup before a start, or delete the environment"
		if m.State == core.StateActive || m.State == core.StateArchiving {
			f.Then = "bring it back from a backup before a start, or reset or delete the environment"
		}
	}
	c.report.add(f)
}

// uids says whose uid is another's too, or is not recorded.
func (c *checker) uids(all []core.EnvironmentRecord) error {
	owners := map[int]string{}
	for _, env := range all {
		if env.HostUID == 0 {
			continue
		}
		if other, taken := owners[env.HostUID]; taken {
			c.report.damaged(env.ID, fmt.Sprintf("its uid %d is that of %s too: neither is kept from the other", env.HostUID, other),
				"put back a backup, or delete one of them")
		}
		owners[env.HostUID] = env.ID
	}
	without, err := c.exam.Store.WithoutUID(c.ctx)
	for _, id := range without {
		c.report.damaged(id, "its uid is not recorded as taken, and may be given to another", "put back a backup, or delete it")
	}
	return err
}

// folder looks at the folder of an environment whose folder is what counts.
func (c *checker) folder(env core.EnvironmentRecord) {
	found, there := c.survey.Folders[env.ID]
	if !there || env.State != core.StateActive && env.State != core.StateArchiving {
		return
	}
	uid := env.HostUID
	if uid == 0 {
		uid = os.Geteuid()
	}
	switch {
	case !found.Fits:
		c.report.damaged(env.ID, "its folder is none", "put back its folder, or reset the environment")
	case found.UID != uid:
		c.report.damaged(env.ID, fmt.Sprintf("its folder belongs to uid %d, and should to %d", found.UID, uid),
			"put back a copy that keeps the owners of files, or reset the environment")
	}
}

// archive looks at the archive of an environment whose archive is what counts.
func (c *checker) archive(env core.EnvironmentRecord) error {
	found, there := c.survey.Archives[env.ID]
	if !there || env.Archive == nil || env.State != core.StateArchived && env.State != core.StateRestoring {
		return nil
	}
	const then = "put back a copy of it, or delete the environment"
	path := "archives/" + env.ID + ".tar.zst"
	if !found.Fits {
		c.report.damaged(path, "it is no file", then)
		return nil
	}
	if found.Size != env.Archive.Bytes {
		c.report.damaged(path, fmt.Sprintf("it has %d bytes, and %d were written", found.Size, env.Archive.Bytes), then)
		return nil
	}
	if c.Quick {
		return nil
	}
	// Sockets are counted, and not packed, so there may be fewer files.
	err := c.survey.VerifyArchive(c.ctx, env.ID, env.Archive.Content.Files)
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	c.report.ArchivesRead++
	if err != nil {
		c.report.damaged(path, err.Error(), then)
	}
	return nil
}
