package core_test

import (
	"bytes"
	"log/slog"
	"slices"
	"testing"
	"time"

	"envapi/core"
)

// TestThePlanSaysWhatAStartDoes has every state with and without a folder and an archive.
func TestThePlanSaysWhatAStartDoes(t *testing.T) {
	const (
		missing = "its archive is missing, and it cannot be restored"
		lost    = "its folder is missing, and its files with it"
	)
	created := time.Now()
	for _, test := range []struct {
		state           core.EnvironmentState
		packed          bool // the record says that there is an archive
		used            bool // since it was created
		folder, archive bool
		did, broken     string
	}{
		{core.StateActive, false, false, true, false, "", ""},
		{core.StateActive, false, false, true, true, "removed the archive of an active environment", ""},
		{core.StateActive, false, false, false, true, "laid out the archive of an active environment without a folder", ""},
		{core.StateActive, false, false, false, false, "made a missing folder", ""},
		{core.StateActive, false, true, false, false, "", lost},
		{core.StateActive, false, true, true, false, "", ""},
		{core.StateActive, false, true, false, true, "laid out the archive of an active environment without a folder", ""},
		{core.StateArchiving, false, true, false, false, "took back the archiving of an environment", lost},
		{core.StateArchived, true, false, false, true, "", ""},
		{core.StateArchived, true, false, true, true, "removed the folder of an archived environment", ""},
		{core.StateArchived, true, false, true, false, "", missing},
		{core.StateArchived, true, false, false, false, "", missing},
		{core.StateArchiving, false, false, true, false, "took back the archiving of an environment", ""},
		{core.StateArchiving, false, false, true, true, "took back the archiving of an environment", ""},
		{core.StateRestoring, true, false, false, true, "took back the restoring of an environment", ""},
		{core.StateRestoring, true, false, true, true, "took back the restoring of an environment", ""},
		{core.StateRestoring, true, false, true, false, "took back the restoring of an environment", missing},
		{core.StateRestoring, false, false, true, false, "dropped a fork that was not made", ""},
		{core.StateResetting, false, false, true, false, "finished a reset", ""},
		{core.StateResetting, false, false, false, true, "finished a reset", ""},
		{core.StateDeleting, false, false, true, false, "finished a deletion", ""},
		{core.StateDeleting, false, false, false, false, "finished a deletion", ""},
	} {
		env := core.EnvironmentRecord{ID: "env_a", State: test.state, CreatedAt: created, LastActivityAt: created}
		if test.used {
			env.LastActivityAt = created.Add(time.Millisecond)
		}
		if test.packed {
			env.Archive = &core.Archive{}
		}
		there := core.Remains{Folders: map[string]bool{}, Archives: map[string]bool{}}
		if test.folder {
			there.Folders[env.ID] = true
		}
		if test.archive {
			there.Archives[env.ID] = true
		}
		plan := core.PlanMending([]core.EnvironmentRecord{env}, there)
		if test.did == "" && test.broken == "" {
			if len(plan) != 0 {
				t.Errorf("%+v: %+v", test, plan)
			}
			continue
		}
		if len(plan) != 1 || plan[0].Did != test.did || plan[0].Broken != test.broken || plan[0].ID != env.ID || plan[0].State != test.state {
			t.Errorf("%+v: %+v", test, plan)
		}
		if len(there.Folders)+len(there.Archives) != count(test.folder, test.archive) {
			t.Error("what was given is changed")
		}
	}
}

func count(all ...bool) (n int) {
	for _, one := range all {
		if one {
			n++
		}
	}
	return n
}

func TestThePlanKnowsWhatNoRecordKnows(t *testing.T) {
	plan := core.PlanMending(nil, core.Remains{
		Folders:    map[string]bool{"env_b": true, "env_a": true},
		Archives:   map[string]bool{"env_c": true, "env_a": true},
		Unreleased: []string{"env_d"},
	})
	var said []string
	for _, m := range plan {
		said = append(said, m.ID+" "+m.Did)
	}
	want := []string{
		"env_a removed a folder without a record", "env_b removed a folder without a record",
		"env_c removed an archive without a record", "env_d frees what is left of a deleted environment, and its uid",
	}
	if !slices.Equal(said, want) {
		t.Errorf("the plan is %q", said)
	}
}

// TestAStartLogsWhatWasPlanned has the log of a start be the plan, line by line.
func TestAStartLogsWhatWasPlanned(t *testing.T) {
	w := newWorld(t)
	active, archived := w.create(), w.create()
	w.archive(archived.ID)
	stray := "env_" + long(26)
	must(t, w.folders.Create(t.Context(), stray, 0))
	must(t, w.folders.Create(t.Context(), archived.ID, 0))
	must(t, w.folders.Remove(t.Context(), active.ID, func() {}))
	_ = w.Close()

	records, err := w.store.AllEnvironments(t.Context())
	must(t, err)
	there := core.Remains{Folders: map[string]bool{archived.ID: true, stray: true}, Archives: map[string]bool{archived.ID: true}}
	var log bytes.Buffer
	w.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	plan := core.PlanMending(records, there)
	w.start()
	_ = w.Close() // nothing is written to the log any more
	if len(plan) != 3 {
		t.Errorf("the plan is %+v", plan)
	}
	rest := log.Bytes()
	for _, m := range plan {
		_, after, found := bytes.Cut(rest, []byte(m.Did+`" id=`+m.ID))
		if !found {
			t.Errorf("%q of %s is not in the log, or not in that order:\n%s", m.Did, m.ID, log.String())
			continue
		}
		rest = after
	}
}
