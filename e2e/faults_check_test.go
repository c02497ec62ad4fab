package e2e

import (
	"bytes"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // what the records say while no service serves them
)

// check sees that the old or the new is there, entire, and nothing else, after a call
// that gave answer or err. Then it removes everything.
func (b *faultBed) check(w faultScene, at faultStep, answer object, err error) {
	b.t.Helper()
	b.nothingLeft(w, at)
	states := b.ids()
	state, there := states[w.id]
	delete(states, w.id)
	old := b.wasOld(w, state, len(states))
	if there {
		old = b.hasTree(w, at, old)
		b.hasCommands(w, at)
	} else if b.becomes != "gone" {
		b.t.Errorf("%s: the environment is gone", at)
	}
	if err == nil && old {
		b.t.Errorf("%s: %v was answered, and it is as before", at, brief(answer))
	}
	for id, state := range states {
		b.hasMade(w, at, id, state)
	}
	b.again(w.place, at.String(), old)
	b.clear(at)
}

// same says whether the new looks like the old from outside.
func (b *faultBed) same() bool { return b.files || b.empty && !b.archived }

// wasOld says whether the state of the environment, and that of others, is what it was.
func (b *faultBed) wasOld(w faultScene, state string, others int) bool {
	switch {
	case b.makes != "":
		return others == 0
	case b.archived:
		return state == "archived"
	}
	return state == "active" && b.becomes != "active" || b.same()
}

// hasTree sees that the folder holds the old or the new, and says whether it is the old.
func (b *faultBed) hasTree(w faultScene, at faultStep, old bool) bool {
	b.t.Helper()
	tree := b.tree(w.place)
	switch {
	case b.files && timeless(tree) == b.new:
		return false
	case b.files && timeless(tree) == timeless(w.tree):
		return true
	case b.empty && (b.same() || !old) && strings.Count(tree, "\n") == 1:
		return false
	case b.empty && !b.same() && !old || b.files || tree != w.tree:
		b.t.Errorf("%s: the folder is\n%s\nand was\n%s", at, tree, w.tree)
	}
	return old
}

// hasMade sees that an environment that was made is whole.
func (b *faultBed) hasMade(w faultScene, at faultStep, id, state string) {
	b.t.Helper()
	tree := b.tree(place{w.rest, id})
	whole := b.makes == "empty" && strings.Count(tree, "\n") == 1 || b.makes == "copy" && tree == w.tree
	if state != "active" || !whole {
		b.t.Errorf("%s: there is another environment, %s, with\n%s", at, state, tree)
	}
}

// hasCommands sees that commands have their results.
func (b *faultBed) hasCommands(w faultScene, at faultStep) {
	b.t.Helper()
	if c := w.get(b.t, w.ended, 0); c.exit() != 9 || c.Stdout.Text != "out\n" {
		b.t.Errorf("%s: what had ended is %s", at, c.brief())
	}
	if again := w.exec(b.t, object{"command": "echo out; exit 9", "idempotency_key": "ended"}); again.ID != w.ended {
		b.t.Errorf("%s: the key of %s gives %s", at, w.ended, again.ID)
	}
	c := w.get(b.t, w.running, 0)
	if c.Status == "running" && at.lives {
		return
	}
	if c.Status != "lost" && c.Status != "killed" || c.Reason == "" || c.Stdout.Text != "began\n" {
		b.t.Errorf("%s: what ran is %s", at, c.brief())
	}
}

// ids are the states of all environments.
func (b *faultBed) ids() map[string]string {
	b.t.Helper()
	states := map[string]string{}
	items, _ := b.s.must(b.t, "list_environments", object{"limit": 100})["items"].([]any)
	for _, item := range items {
		env, _ := item.(object)
		states[text(env, "id")] = text(env, "state")
	}
	return states
}

// clear deletes everything.
func (b *faultBed) clear(at faultStep) {
	b.t.Helper()
	states := b.ids()
	if most := 2; len(states) > most {
		b.t.Errorf("%s: the same call again made another environment: %v", at, states)
	}
	for id := range states {
		b.s.must(b.t, "delete_environment", object{"environment_id": id})
	}
}

// nothingLeft sees that there is nothing but what the environments need.
func (b *faultBed) nothingLeft(w faultScene, at faultStep) {
	b.t.Helper()
	err := eventually(func() error {
		var want struct{ folders, archives, uids []string }
		for id, state := range b.ids() {
			switch want.uids = append(want.uids, id); state {
			case "active":
				want.folders = append(want.folders, id)
			case "archived":
				want.archives = append(want.archives, id+".tar.zst")
			default:
				return fmt.Errorf("%s is %s", id, state)
			}
		}
		for dir, names := range map[string][]string{"workspaces": want.folders, "archives": want.archives, "trash": nil} {
			slices.Sort(names)
			if got := entries(b.t, filepath.Join(b.s.data, dir)); !slices.Equal(got, names) {
				return fmt.Errorf("%s holds %v, want %v", dir, got, names)
			}
		}
		if files := b.s.staged(b.t); len(files) > 0 {
			return fmt.Errorf("staging holds %v", files)
		}
		slices.Sort(want.uids)
		held, err := b.column(`SELECT environment_id FROM host_uids WHERE environment_id IS NOT NULL ORDER BY 1`)
		if err != nil || os.Geteuid() == 0 && !slices.Equal(held, want.uids) {
			return fmt.Errorf("uids are held for %v, want %v: %w", held, want.uids, err)
		}
		if at.lives {
			return nil
		}
		return b.noRemains(w)
	})
	if err != nil {
		b.t.Errorf("%s: %v\n%s", at, err, b.said())
	}
}

// noRemains sees that nothing of the service before is there: no process, no mount and no
// cgroup.
func (b *faultBed) noRemains(w faultScene) error {
	if n := alive(w.mark); n > 0 {
		return fmt.Errorf("%d processes are left", n)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || bytes.Contains(mounts, []byte(b.s.data)) {
		return fmt.Errorf("there are mounts below %s: %w", b.s.data, err)
	}
	for _, group := range b.s.cgroups(b.t) {
		pids, err := os.ReadFile(filepath.Join(group, "cgroup.procs")) // a group may go meanwhile
		if err == nil && len(pids) > 0 {
			return fmt.Errorf("processes are left in %s: %q", group, pids)
		}
	}
	return nil
}

// said is what the service has logged, but for requests.
func (b *faultBed) said() string {
	var all strings.Builder
	for line := range strings.Lines(b.s.output.String()) {
		if !strings.Contains(line, "msg=request ") {
			all.WriteString(line)
		}
	}
	return all.String()
}

// toMend are the environments of which a start must mend something: those in a passing
// state, those whose folder or archive does not fit their state, and those of which files
// are half changed.
func (b *faultBed) toMend() []string {
	b.t.Helper()
	has := func(pattern, id string) bool {
		found, err := filepath.Glob(filepath.Join(b.s.data, strings.ReplaceAll(pattern, "ID", id)))
		if err != nil {
			b.t.Fatal(err)
		}
		return len(found) > 0
	}
	var ids []string
	known, err := b.column(`SELECT id || ' ' || state FROM environments`)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, record := range known {
		id, state, _ := strings.Cut(record, " ")
		fits := state == "active" && has("workspaces/ID", id) && !has("archives/ID.tar.zst", id) ||
			state == "archived" && !has("workspaces/ID", id) && has("archives/ID.tar.zst", id)
		if !fits || has("staging/ID/t.*/.journal", id) {
			ids = append(ids, id)
		}
	}
	for _, id := range entries(b.t, filepath.Join(b.s.data, "workspaces")) {
		if !slices.ContainsFunc(known, func(record string) bool { return strings.HasPrefix(record, id) }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// column asks the records, of a service that serves or of none: by a copy, so that
// nothing in the data folder is touched.
func (b *faultBed) column(query string) (all []string, err error) {
	dir := b.t.TempDir()
	for _, end := range []string{"", "-wal"} {
		data, err := os.ReadFile(filepath.Join(b.s.data, "envapi.db"+end))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "envapi.db"+end), data, 0o600)
		}
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.Join(dir, "envapi.db")}).String())
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(b.t.Context(), query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
