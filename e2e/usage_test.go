package e2e

import (
	"reflect"
	"strings"
	"testing"
)

// commandUsage is the usage of a Command as callers see it.
type commandUsage struct {
	CPUMS     *int64 `json:"cpu_ms"`
	Memory    *int64 `json:"peak_memory_bytes"`
	Processes *int64
}

// counted says whether the service counts the processes of an environment by a
// cgroup of its own.
func (s *service) counted(t *testing.T) bool {
	t.Helper()
	status := as[struct {
		Sandbox struct {
			Controls []struct{ Name, Detail string }
		}
	}](t, s.must(t, "get_status", object{}))
	for _, c := range status.Sandbox.Controls {
		if c.Name == "processes" {
			return strings.HasPrefix(c.Detail, "cgroup")
		}
	}
	t.Fatal("the status has no control of processes")
	return false
}

// TestWhatACommandUsedIsTold: at once, and in the record of it after a restart.
func TestWhatACommandUsedIsTold(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p, counted := s.place(t), s.counted(t)
		sh := p.open(t, nil)
		var ids []string
		var told []any
		for _, c := range []struct {
			what      string
			answer    object
			processes int64 // 0: null, wherever it runs
			cpu       bool
		}{
			{"alone", p.must(t, "exec", p.in(object{"argv": []string{"true"}})), 1, true},
			{"three", p.must(t, "exec", p.in(object{"command": "sleep 300 & a=$!; sleep 300 & kill $a $!; wait"})), 3, true},
			{"in a shell", sh.must(t, "run_in_shell", sh.ref(object{"command": "sleep 300 &"})), 0, counted},
			{"in a shell of which more lives", sh.must(t, "run_in_shell", sh.ref(object{"command": "true"})), 0, false},
		} {
			u := as[struct{ Usage commandUsage }](t, c.answer).Usage
			if (u.CPUMS != nil) != c.cpu || (u.Memory != nil) != c.cpu {
				t.Errorf("%s: %+v", c.what, u)
			}
			switch want := counted && c.processes > 0; {
			case want != (u.Processes != nil):
				t.Errorf("%s: processes are told: %v", c.what, u.Processes != nil)
			case want && *u.Processes != c.processes:
				t.Errorf("%s: %d processes, want %d", c.what, *u.Processes, c.processes)
			}
			ids, told = append(ids, c.answer["id"].(string)), append(told, c.answer["usage"])
		}
		s.kill()
		again := s.restart(t)
		for i, id := range ids {
			if got := again.must(t, "get_command", object{"command_id": id})["usage"]; !reflect.DeepEqual(got, told[i]) {
				t.Errorf("%v became %v", told[i], got)
			}
		}
	})
}
