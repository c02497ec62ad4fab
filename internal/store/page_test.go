package store

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"envapi/core"
)

func listInput(limit int, cursor string) core.ListEnvironmentsInput {
	return core.ListEnvironmentsInput{Paging: core.Paging{Limit: limit, Cursor: cursor}}
}

func commandsInput(environmentID, status string, limit int, cursor string) core.ListCommandsInput {
	return core.ListCommandsInput{EnvironmentID: environmentID, Status: status, Paging: core.Paging{Limit: limit, Cursor: cursor}}
}

// idsOf walks a list page by page.
func idsOf(t *testing.T, limit int, page func(limit int, cursor string) (ids []string, next string, err error)) string {
	t.Helper()
	var all []string
	for cursor, pages := "", 0; ; pages++ {
		ids, next, err := page(limit, cursor)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids) > limit || (next != "" && len(ids) < limit) || pages > 1000 {
			t.Fatalf("page %d of limit %d has %d items and the next cursor %q", pages, limit, len(ids), next)
		}
		all = append(all, ids...)
		if cursor = next; next == "" {
			return strings.Join(all, " ")
		}
	}
}

func environmentIDs(s *Store, o core.Owner, f core.ListEnvironmentsInput) func(int, string) ([]string, string, error) {
	return func(limit int, cursor string) (ids []string, next string, err error) {
		f.Paging = core.Paging{Limit: limit, Cursor: cursor}
		items, next, err := s.ListEnvironments(context.Background(), o, f)
		for _, item := range items {
			ids = append(ids, item.ID)
		}
		return ids, next, err
	}
}

func commandIDs(s *Store, o core.Owner, environmentID, status string) func(int, string) ([]string, string, error) {
	return func(limit int, cursor string) (ids []string, next string, err error) {
		items, next, err := s.ListCommands(context.Background(), o, commandsInput(environmentID, status, limit, cursor))
		for _, item := range items {
			ids = append(ids, item.ID)
		}
		return ids, next, err
	}
}

func TestListsAreNewestFirstAlsoWithEqualTimes(t *testing.T) {
	s := openNew(t)
	mustCreate(t, s, alice, "env_1", "env_2", "env_3", "env_4", "env_5")
	mustCreate(t, s, bob, "env_b")
	for i := range 10 {
		mustRun(t, s, alice, fmt.Sprintf("env_%d", i%2+1), fmt.Sprintf("c%d", i))
	}
	for limit := 1; limit <= 11; limit++ {
		if got := idsOf(t, limit, environmentIDs(s, alice, core.ListEnvironmentsInput{})); got != "env_5 env_4 env_3 env_2 env_1" {
			t.Errorf("limit %d: environments %q", limit, got)
		}
		if got := idsOf(t, limit, commandIDs(s, alice, "", "")); got != "c9 c8 c7 c6 c5 c4 c3 c2 c1 c0" {
			t.Errorf("limit %d: commands %q", limit, got)
		}
		if got := idsOf(t, limit, commandIDs(s, alice, "env_2", "")); got != "c9 c7 c5 c3 c1" {
			t.Errorf("limit %d: commands of one environment %q", limit, got)
		}
	}
}

func TestListsStayStableWhileThingsComeAndGo(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	mustCreate(t, s, alice, "env_1", "env_2", "env_3", "env_4", "env_5", "env_6")
	page, cursor, err := s.ListEnvironments(ctx, alice, listInput(3, ""))
	if err != nil || len(page) != 3 {
		t.Fatal(page, err)
	}
	// The place that the cursor names goes, a neighbour goes, another comes.
	for _, id := range []string{"env_4", "env_3", "env_6"} {
		if err := s.DeleteEnvironment(ctx, alice, id); err != nil {
			t.Fatal(err)
		}
	}
	mustCreate(t, s, alice, "env_7")
	page, cursor, err = s.ListEnvironments(ctx, alice, listInput(3, cursor))
	if err != nil || len(page) != 2 || page[0].ID != "env_2" || page[1].ID != "env_1" || cursor != "" {
		t.Errorf("the second page is %v, %q, %v", page, cursor, err)
	}
}

func TestListEnvironmentsFilters(t *testing.T) {
	s := openNew(t)
	for id, labels := range map[string]map[string]string{
		"plain":  {"team": "red", "tier": "1"},
		"blue":   {"team": "blue"},
		"empty":  {"team": ""},
		"none":   nil,
		"quoted": {`a"b'c\d` + "\n\u2028<&>é😀\x01": `v"'\` + "\u2029</script>\x00"},
		"dotted": {"a.b[0]": "x=y=z", "$": "1", "null": "null", "%": "_"},
	} {
		e := env(alice, id)
		e.Labels, e.Name = labels, "name of "+id
		if id == "blue" {
			e.State = core.StateResetting
		}
		if _, _, err := s.CreateEnvironment(context.Background(), e, plenty, noUIDs, noKey); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		name  string
		input core.ListEnvironmentsInput
		want  string
	}{
		{"state", core.ListEnvironmentsInput{State: "resetting"}, "blue"},
		{"state of none", core.ListEnvironmentsInput{State: "deleting"}, ""},
		{"name", core.ListEnvironmentsInput{Name: "name of plain"}, "plain"},
		{"name is exact", core.ListEnvironmentsInput{Name: "name of %"}, ""},
		{"label and value", core.ListEnvironmentsInput{Label: "team=red"}, "plain"},
		{"empty value", core.ListEnvironmentsInput{Label: "team="}, "empty"},
		{"value that another has", core.ListEnvironmentsInput{Label: "tier=red"}, ""},
		{"number", core.ListEnvironmentsInput{Label: "tier=1"}, "plain"},
		{"key with every odd character", core.ListEnvironmentsInput{Label: `a"b'c\d` + "\n\u2028<&>é😀\x01"}, "quoted"},
		{"value with every odd character", core.ListEnvironmentsInput{Label: `a"b'c\d` + "\n\u2028<&>é😀\x01" + `=v"'\` + "\u2029</script>\x00"}, "quoted"},
		{"value with equal signs", core.ListEnvironmentsInput{Label: "a.b[0]=x=y=z"}, "dotted"},
		{"key is no path", core.ListEnvironmentsInput{Label: "$"}, "dotted"},
		{"null is a word", core.ListEnvironmentsInput{Label: "null=null"}, "dotted"},
		{"per cent is a character", core.ListEnvironmentsInput{Label: "%=x"}, ""},
		{"empty key", core.ListEnvironmentsInput{Label: "="}, ""},
		{"all together", core.ListEnvironmentsInput{Label: "team=blue", State: "resetting", Name: "name of blue"}, "blue"},
		{"all together but one", core.ListEnvironmentsInput{Label: "team=blue", State: "active", Name: "name of blue"}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := idsOf(t, 1, environmentIDs(s, alice, c.input)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := idsOf(t, 1, environmentIDs(s, bob, c.input)); got != "" {
				t.Errorf("another owner got %q", got)
			}
		})
	}
	if got := idsOf(t, 50, environmentIDs(s, alice, core.ListEnvironmentsInput{Label: "team"})); len(strings.Fields(got)) != 3 {
		t.Errorf("with the key: %q", got)
	}
}

func TestListCommandsFilters(t *testing.T) {
	s := openNew(t)
	mustCreate(t, s, alice, "env_1", "env_2")
	mustRun(t, s, alice, "env_1", "c1", "c2")
	mustRun(t, s, alice, "env_2", "c3", "c4")
	for _, id := range []string{"c1", "c3"} {
		if err := s.FinishCommand(context.Background(), id, exited(0)); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		name                string
		owner               core.Owner
		environment, status string
		want                string
	}{
		{"all", alice, "", "", "c4 c3 c2 c1"},
		{"status", alice, "", "running", "c4 c2"},
		{"environment", alice, "env_1", "", "c2 c1"},
		{"both", alice, "env_2", "exited", "c3"},
		{"a status of none", alice, "", "lost", ""},
		{"an unknown environment", alice, "env_3", "", ""},
		{"another owner", bob, "", "", ""},
		{"another owner's environment", bob, "env_1", "", ""},
		{"another profile's environment", alice2, "env_1", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := idsOf(t, 1, commandIDs(s, c.owner, c.environment, c.status)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A list reads its page and no more: no sorting, no walk through the rows of
// other callers.
func TestListsUseAnIndex(t *testing.T) {
	s := openNew(t)
	for _, c := range []struct {
		sel   selection
		index string
	}{
		{selectEnvironments(alice, core.ListEnvironmentsInput{State: "active", Label: "a=b"}), "environments_of_owner"},
		{selectCommands(alice, core.ListCommandsInput{}), `commands_of_owner \(account=\? AND profile=\?`},
		{selectCommands(alice, core.ListCommandsInput{Status: "lost"}), `commands_of_owner_by_status \(account=\? AND profile=\? AND status=\?`},
		{selectCommands(alice, core.ListCommandsInput{EnvironmentID: "env_1"}), `commands_of_environment \(environment_id=\?`},
		{selectCommands(alice, core.ListCommandsInput{EnvironmentID: "env_1", Status: "lost"}), `commands_of_environment_by_status \(environment_id=\? AND status=\?`},
	} {
		sel := c.sel
		sel.where(`seq < ?`, 5)
		query, args := sel.query(50)
		plan, err := collect(context.Background(), s.lists, func(row scanner) (step string, err error) {
			var ignored int
			err = row.Scan(&ignored, &ignored, &ignored, &step)
			return step, err
		}, `EXPLAIN QUERY PLAN `+query, args...)
		if err != nil {
			t.Fatal(err)
		}
		search := regexp.MustCompile(`^SEARCH .* USING INDEX ` + c.index + `.* rowid<\?`)
		if !search.MatchString(plan[0]) || strings.Contains(strings.Join(plan, " "), "TEMP B-TREE") {
			t.Errorf("with %s: %q", c.index, plan)
		}
	}
}

func TestCursorsThatWereNotGivenAreRefused(t *testing.T) {
	s, other := openNew(t), openNew(t)
	mustCreate(t, s, alice, "env_1", "env_2")
	_, good, err := s.ListEnvironments(context.Background(), alice, listInput(1, ""))
	if err != nil || good == "" {
		t.Fatal(good, err)
	}
	for name, cursor := range map[string]string{
		"garbage":             "garbage",
		"of another list":     s.cursors.after(listOfCommands, 2),
		"of another store":    other.cursors.after(listOfEnvironments, 2),
		"in the clear":        base64.RawURLEncoding.EncodeToString([]byte("\x01e\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02")),
		"too short":           good[:len(good)-1],
		"too long":            good + "AA",
		"padded":              good + "==",
		"a changed character": "A" + good[1:],
		"white space":         " ",
		"not UTF-8":           "\xff\x00",
	} {
		if cursor == good {
			cursor = "B" + good[1:]
		}
		_, _, err := s.ListEnvironments(context.Background(), alice, listInput(1, cursor))
		e := core.AsError(err)
		if err == nil || e.Code != core.CodeInvalidArgument || e.Facts["field"] != "cursor" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCursorsSayNothingOfOthers(t *testing.T) {
	s := openNew(t)
	a, b := s.cursors.after(listOfCommands, 1000), s.cursors.after(listOfCommands, 1001)
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	if same > len(a)/2 {
		t.Errorf("two neighbours look alike: %s %s", a, b)
	}
}

func FuzzCursor(f *testing.F) {
	c, err := newCursors(make([]byte, 16))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(c.after(listOfEnvironments, 7))
	f.Add("")
	f.Fuzz(func(t *testing.T, cursor string) {
		seq, err := c.seq(listOfEnvironments, cursor)
		if err == nil && c.after(listOfEnvironments, seq) != strings.NewReplacer("\r", "", "\n", "").Replace(cursor) {
			t.Errorf("%q was taken for %d", cursor, seq)
		}
	})
}
