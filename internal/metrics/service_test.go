package metrics

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"envapi/core"
)

// awake is a source of a service that does something of everything.
func awake() Source {
	return Source{
		Standing: func(context.Context) Standing { return Standing{Ready: true, Store: true, Keyring: true} },
		Census:   func() core.Census { return core.Census{Boxes: 2, Shells: 3, Commands: 4} },
		States: func(context.Context) (map[core.EnvironmentState]int, error) {
			return map[core.EnvironmentState]int{core.StateActive: 5, core.StateArchived: 6}, nil
		},
		Space: func() (core.DiskSpace, error) {
			return core.DiskSpace{Free: core.DiskUse{Bytes: 7, Files: 8}, Total: core.DiskUse{Bytes: 9, Files: 10}}, nil
		},
		Reaped: func() core.Reaped {
			return core.Reaped{
				Runs: 11, LastRun: time.UnixMilli(12_500),
				Ended: map[string]int64{"shells": 13}, Failed: map[string]int64{"shells": 0, "activity": 1},
			}
		},
		StoreErrors: func() map[string]int64 { return map[string]int64{"full": 14} },
	}
}

func TestWhatTheServiceDoesIsShown(t *testing.T) {
	l := listen(t, Config{Source: awake()})
	_, text := ask(t, http.MethodGet, "http://"+l.Addr+"/metrics", "")
	for _, want := range []string{
		"ready 1", "draining 0", "store_ready 1", "keyring_ready 1",
		`environments{state="active"} 5`, `environments{state="archived"} 6`, `environments{state="deleting"} 0`,
		"boxes 2", "shells_open 3", "commands_running 4",
		"disk_free_bytes 7", "disk_free_files 8", "disk_size_bytes 9",
		"reaper_runs_total 11", "reaper_last_run_timestamp_seconds 12.5",
		`reaper_ended_total{kind="shells"} 13`, `reaper_failures_total{kind="activity"} 1`,
		`store_errors_total{kind="full"} 14`,
	} {
		if !strings.Contains(text, "\nenvapi_"+want+"\n") {
			t.Errorf("there is no envapi_%s in\n%s", want, text)
		}
	}
}

func TestWhatCannotBeToldIsLeftOut(t *testing.T) {
	s := awake()
	s.States = func(ctx context.Context) (map[core.EnvironmentState]int, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the store may take as long as it likes")
		}
		return nil, errors.New("no store")
	}
	s.Space = func() (core.DiskSpace, error) { return core.DiskSpace{}, errors.New("no disk") }
	s.Reaped = func() core.Reaped { return core.Reaped{} }
	l := listen(t, Config{Source: s})
	status, text := ask(t, http.MethodGet, "http://"+l.Addr+"/metrics", "")
	if status != http.StatusOK || !strings.Contains(text, "envapi_boxes 2") {
		t.Errorf("%d %s", status, text)
	}
	for _, no := range []string{"envapi_environments{", "envapi_disk_free_bytes ", "envapi_reaper_last_run_timestamp_seconds "} {
		if strings.Contains(text, "\n"+no) {
			t.Errorf("%s is shown", no)
		}
	}
}

func TestNamesFollowTheConventions(t *testing.T) {
	problems, err := testutil.GatherAndLint(registry("v", awake()))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "envapi_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
