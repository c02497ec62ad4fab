package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"envapi/internal/require"
)

// smallLimits are a deployment's in which every limit is soon reached. A request
// rate is another matter, and these tests make many.
var smallLimits = map[string]string{
	"ENVAPI_MAX_ENVIRONMENTS_PER_PROFILE": "3",
	"ENVAPI_MAX_ENVIRONMENTS_PER_ACCOUNT": "4",
	"ENVAPI_MAX_ARCHIVED_ENVIRONMENTS":    "1",
	"ENVAPI_MAX_SHELLS":                   "2",
	"ENVAPI_MAX_RUNNING_COMMANDS":         "3",
	"ENVAPI_MAX_PROCESSES":                "16",
	"ENVAPI_MAX_MEMORY_BYTES":             "67108864",
	"ENVAPI_MAX_DISK_BYTES":               "8388608",
	"ENVAPI_MAX_FILES":                    "200",
	"ENVAPI_MAX_REQUESTS_PER_SECOND":      "0",
}

// quotaDoor is a caller of a service by one of its doors.
type quotaDoor struct {
	player
	work player // the same account in another profile
	// What this host bounds.
	memory, processes bool
}

// quotaDoors are the doors of a service, each for an account of its own.
func quotaDoors(t *testing.T) map[string]quotaDoor {
	t.Helper()
	k := startKeyring(t)
	env := map[string]string{"ENVAPI_KEYRING_URL": k.url}
	for name, value := range smallLimits {
		env[name] = value
	}
	s := start(t, config{keyring: true, env: env})
	overREST := func(token string) client { return rest{s.url, token} }
	overMCP := func(token string) client {
		return connectGo(t, &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: bearer{token}}})
	}
	doors := map[string]quotaDoor{}
	for name, door := range map[string]func(token string) client{"REST": overREST, "MCP": overMCP} {
		as := func(profile string) player {
			return player{t, door(k.mint(t, object{"sub": "of " + name, "profile": profile}))}
		}
		s.token = k.mint(t, object{"sub": "nobody"})
		memory, _ := s.holds(t, "memory")
		processes, how := s.holds(t, "processes")
		// Otherwise threads of the init count too, and what is in it never comes to the limit.
		processes = processes && strings.HasPrefix(how, "cgroup")
		doors[name] = quotaDoor{as("default"), as("work"), memory, processes}
	}
	return doors
}

// create makes an environment and gives its id.
func (p player) create() string {
	p.t.Helper()
	return as[struct{ ID string }](p.t, p.call("create_environment", object{})).ID
}

// refused makes a call that has to fail on a limit, which it has to name.
func (p player) refused(limit string, allowed, used int64, operation string, in object) {
	p.t.Helper()
	answer, err := p.c.call(context.Background(), operation, in)
	if wrong := namesLimit(err, limit, allowed, used); wrong != "" {
		p.t.Errorf("%s gave %s: %s", operation, brief(answer), wrong)
	}
}

// namesLimit says what is wrong with a refusal for a limit. What is used is at
// least that many: what has no exact number at one moment can be more.
func namesLimit(err error, limit string, allowed, used int64) string {
	var p *problem
	switch {
	case !errors.As(err, &p):
		return fmt.Sprintf("%v is no refusal", err)
	case p.Code != "quota_exceeded" || p.Limit != limit:
		return fmt.Sprintf("%v is for the limit %q, want %q", p, p.Limit, limit)
	case p.Allowed == nil || *p.Allowed != allowed:
		return fmt.Sprintf("%v does not say that %d are allowed", p, allowed)
	case p.Used == nil || *p.Used < used:
		return fmt.Sprintf("%v does not say that %d are used", p, used)
	}
	return ""
}

// quotas reach each limit in turn. An environment is theirs to fill, unless its
// number is what is limited.
var quotas = []struct {
	limit string
	reach func(d quotaDoor)
}{
	{"environments_per_profile", func(d quotaDoor) {
		for range 3 {
			d.create()
		}
		d.refused("environments_per_profile", 3, 3, "create_environment", object{})
	}},
	{"environments_per_account", func(d quotaDoor) {
		for range 3 {
			d.create()
		}
		d.work.create()
		d.work.refused("environments_per_account", 4, 4, "create_environment", object{})
	}},
	{"archived_environments", func(d quotaDoor) {
		d.call("archive_environment", object{"environment_id": d.create()})
		d.refused("archived_environments", 1, 1, "archive_environment", object{"environment_id": d.create()})
	}},
	{"shells", func(d quotaDoor) {
		in := object{"environment_id": d.create()}
		for range 2 {
			d.call("open_shell", in)
		}
		d.refused("shells", 2, 2, "open_shell", in)
	}},
	{"running_commands", func(d quotaDoor) {
		in := object{"environment_id": d.create(), "command": "sleep 1000", "wait_ms": 0}
		for range 3 {
			d.call("exec", in)
		}
		d.refused("running_commands", 3, 3, "exec", in)
	}},
	{"processes", func(d quotaDoor) {
		if !d.processes {
			require.Feature(d.t, "cgroup", "none counts processes")
		}
		id := d.create()
		d.call("exec", object{"environment_id": id, "command": "for i in $(seq 15); do sleep 1000 & done; touch full; wait", "wait_ms": 0})
		await := object{"environment_id": id, "command": "true", "wait_ms": 0}
		err := eventually(func() error {
			_, err := d.c.call(context.Background(), "exec", await)
			if wrong := namesLimit(err, "processes", 16, 16); wrong != "" {
				return errors.New(wrong)
			}
			return nil
		})
		if err != nil {
			d.t.Error(err)
		}
	}},
	{"memory_bytes", func(d quotaDoor) {
		if !d.memory {
			require.Feature(d.t, "cgroup", "none limits memory")
		}
		got := d.run(object{"environment_id": d.create(), "argv": []string{"python3", "-c", "x = bytearray(1 << 30)"}})
		if got.Status != "out_of_memory" || !strings.Contains(got.Next, "memory_bytes") {
			d.t.Errorf("it is %s", got.brief())
		}
	}},
	{"disk_bytes", func(d quotaDoor) {
		id := d.create()
		d.run(object{"environment_id": id, "command": "head -c 7M /dev/zero > most; sync"})
		d.refused("disk_bytes", 8<<20, 7<<20, "write_file", object{"environment_id": id, "path": "more", "content": strings.Repeat("x", 2<<20)})
		hoard := "for i in $(seq 400); do head -c 1M /dev/zero > f$i; sleep .01; done; sleep 1000"
		if got := d.run(object{"environment_id": id, "command": hoard}); got.Status != "killed" || got.Reason != "disk_bytes" {
			d.t.Errorf("who hoards is %s", got.brief())
		}
	}},
	{"files", func(d quotaDoor) {
		id := d.create()
		d.run(object{"environment_id": id, "command": "for i in $(seq 200); do : > f$i; done"})
		d.refused("files", 200, 200, "write_file", object{"environment_id": id, "path": "more", "content": "x"})
		// Slowly: it must still make some when it is first counted what there is.
		hoard := "for i in $(seq 1000); do : > g$i; sleep .01; done; sleep 1000"
		if got := d.run(object{"environment_id": id, "command": hoard}); got.Status != "killed" || got.Reason != "files" {
			d.t.Errorf("who hoards is %s", got.brief())
		}
	}},
}

// clear deletes every environment.
func (p player) clear() {
	p.t.Helper()
	for _, e := range as[struct{ Items []struct{ ID string } }](p.t, p.call("list_environments", object{})).Items {
		p.call("delete_environment", object{"environment_id": e.ID})
	}
}

func TestEveryLimitIsNamedWhereItIsReached(t *testing.T) {
	t.Parallel()
	for name, d := range quotaDoors(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, q := range quotas {
				t.Run(q.limit, func(t *testing.T) {
					mine := d
					mine.t, mine.work.t = t, t
					q.reach(mine)
					mine.clear()
					mine.work.clear()
				})
			}
		})
	}
}

// many is how many environments are asked for at one time, and few how many there
// may be.
const many, few = 200, 10

func fewEnvironments() map[string]string {
	return map[string]string{
		"ENVAPI_MAX_ENVIRONMENTS_PER_PROFILE": fmt.Sprint(few),
		"ENVAPI_MAX_REQUESTS_PER_SECOND":      "0",
	}
}

// flood asks for many environments at one time. It gives those that were answered,
// how often the limit was named, and what else was said. answered is called for each
// answer while others are on their way.
func flood(c client, answered func(n int64)) (made []string, refused int, other []error) {
	var (
		mu  sync.Mutex
		n   atomic.Int64
		all sync.WaitGroup
	)
	for range many {
		all.Go(func() {
			answer, err := c.call(context.Background(), "create_environment", object{})
			mu.Lock()
			switch {
			case err == nil:
				made = append(made, answer["id"].(string))
			case namesLimit(err, "environments_per_profile", few, few) == "":
				refused++
			default:
				other = append(other, err)
			}
			mu.Unlock()
			answered(n.Add(1))
		})
	}
	all.Wait()
	// A service that stops waits for connections on which nothing was asked yet.
	http.DefaultClient.CloseIdleConnections()
	return made, refused, other
}

func ignore(int64) {}

func TestALimitIsExactForManyAtOneTime(t *testing.T) {
	for name, connect := range map[string]func(t *testing.T, s *service) client{
		"REST": func(_ *testing.T, s *service) client { return s.rest },
		"MCP": func(t *testing.T, s *service) client {
			return connectGo(t, &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: bearer{s.token}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, config{env: fewEnvironments()})
			made, refused, other := flood(connect(t, s), ignore)
			if len(made) != few || refused != many-few {
				t.Errorf("%d were made and %d refused, want %d and %d; %d others, among them %v", len(made), refused, few, many-few, len(other), first(other))
			}
		})
	}
}

func first(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

// TestALimitIsExactOverAKill kills the service when so many calls were answered. What
// was answered is there, and no more than the limit; the others fit in exactly.
func TestALimitIsExactOverAKill(t *testing.T) {
	for _, after := range []int64{1, 5, few, many / 2} {
		t.Run(fmt.Sprint("after ", after), func(t *testing.T) {
			t.Parallel()
			s := start(t, config{env: fewEnvironments()})
			var once sync.Once
			made, _, _ := flood(s.rest, func(n int64) {
				if n >= after {
					once.Do(s.kill)
				}
			})
			again := s.restart(t)
			there := map[string]bool{}
			for _, id := range environmentsOf(t, again) {
				there[id] = true
			}
			for _, id := range made {
				if !there[id] {
					t.Errorf("%s was answered and is not there", id)
				}
			}
			if len(there) > few {
				t.Errorf("there are %d, of which %d were answered", len(there), len(made))
			}
			more, refused, other := flood(again.rest, ignore)
			if len(there)+len(more) != few || refused != many-len(more) {
				t.Errorf("%d were there, %d were made and %d refused; %d others, among them %v", len(there), len(more), refused, len(other), first(other))
			}
			if n := len(environmentsOf(t, again)); n != few {
				t.Errorf("in the end there are %d", n)
			}
		})
	}
}

// environmentsOf gives the ids of all environments of a service's caller.
func environmentsOf(t *testing.T, s *service) []string {
	t.Helper()
	var ids []string
	for _, e := range as[struct{ Items []struct{ ID string } }](t, s.must(t, "list_environments", object{"limit": many})).Items {
		ids = append(ids, e.ID)
	}
	return ids
}
