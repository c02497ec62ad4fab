package core_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"envapi/core"
	"envapi/internal/random"
)

// longestRespite is how long what is idle may be kept after a start, and a run.
const longestRespite = 24*time.Hour + time.Second

// agedModel is what must be true of what grows old, after any sequence of uses, of times
// that pass, and of runs of the reaper.
type agedModel struct {
	*aged
	envs     map[string]*agedThing
	shells   map[string]*agedThing
	commands map[string]string // that run: the shell, or the environment where they run in none
	endings  map[string]*fakeProcess
	spared   time.Time // until when what is idle may be kept, since the service was started anew
}

// agedThing is an environment or a shell.
type agedThing struct {
	env  string // of a shell
	idle time.Duration
	used time.Time
	runs int // commands in it
	over int // how many runs of the reaper have found it idle for long enough
	gone bool
}

// Nothing that was used within its time is ever ended, and what was not is, within two
// runs.
func TestTheReaperEndsWhatIsIdleAndNothingElse(t *testing.T) {
	w := newAged(t)
	random.Check(t, func(rt *rapid.T) {
		w.t = rt
		m := &agedModel{w, map[string]*agedThing{}, map[string]*agedThing{}, map[string]string{}, map[string]*fakeProcess{}, w.clock.time().Add(longestRespite)}
		for _, env := range w.environments() {
			_, err := w.DeleteEnvironment(context.Background(), alice, refTo(env.ID))
			must(rt, err)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create":  m.create,
			"exec":    m.exec,
			"begin":   m.begin,
			"finish":  m.finish,
			"open":    m.open,
			"inShell": m.inShell,
			"read":    m.read,
			"wait":    m.wait,
			"reap":    m.reap,
			"restart": m.restartIt,
			"":        m.check,
		})
	})
}

func (m *agedModel) create(rt *rapid.T) {
	if len(m.envs) >= 8 {
		rt.Skip("enough")
	}
	own := rapid.SampledFrom([]*int64{nil, ptr(int64(3_600_000)), ptr(int64(720_000_000))}).Draw(rt, "idle")
	env, err := m.CreateEnvironment(context.Background(), alice, core.CreateEnvironmentInput{IdleMS: own})
	must(rt, err)
	thing := &agedThing{idle: long100, used: m.clock.time()}
	if own != nil {
		thing.idle = time.Duration(*own) * time.Millisecond
	}
	m.envs[env.ID] = thing
}

func some(rt *rapid.T, things map[string]*agedThing) string {
	ids := slices.Sorted(maps.Keys(things))
	if len(ids) == 0 {
		rt.Skip("there is none")
	}
	return rapid.SampledFrom(ids).Draw(rt, "which")
}

// use notes the use of an environment, which restores it.
func (m *agedModel) use(env string) {
	e := m.envs[env]
	e.used, e.gone, e.over = m.clock.time(), false, 0
}

func (m *agedModel) useShell(id string) {
	sh := m.shells[id]
	sh.used, sh.over = m.clock.time(), 0
	m.use(sh.env)
}

func (m *agedModel) exec(rt *rapid.T) {
	env := some(rt, m.envs)
	if c := m.run(env, "exit 4"); outcomeOf(c) != "exited 4" {
		rt.Fatalf("got %+v", c)
	}
	m.use(env)
}

func (m *agedModel) begin(rt *rapid.T) {
	env := some(rt, m.envs)
	if m.envs[env].runs >= 2 {
		rt.Skip("enough")
	}
	n := len(m.host.processes())
	c := m.run(env, "wait", noWait, func(in *core.ExecInput) { in.TimeoutMS = ptr(int64(3_600_000)) })
	m.use(env)
	m.envs[env].runs++
	m.commands[c.ID], m.endings[c.ID] = "", m.process(n)
}

func (m *agedModel) finish(rt *rapid.T) {
	ids := slices.Sorted(maps.Keys(m.commands))
	if len(ids) == 0 {
		rt.Skip("nothing runs")
	}
	id := rapid.SampledFrom(ids).Draw(rt, "command")
	m.endings[id].exit(0)
	c := m.await(id)
	m.envs[c.EnvironmentID].runs--
	m.use(c.EnvironmentID)
	if sh := m.commands[id]; sh != "" {
		m.shells[sh].runs--
		m.useShell(sh)
	}
	delete(m.commands, id)
}

func (m *agedModel) open(rt *rapid.T) {
	env := some(rt, m.envs)
	for id, sh := range m.shells {
		if sh.env == env && !sh.gone && id != "" {
			rt.Skip("one is enough")
		}
	}
	m.use(env)
	m.shells[m.shellIn(env).ID] = &agedThing{env: env, idle: time.Hour, used: m.clock.time()}
}

func (m *agedModel) inShell(rt *rapid.T) {
	id := some(rt, m.shells)
	sh := m.shells[id]
	if sh.runs > 0 {
		rt.Skip("one runs")
	}
	n := len(m.host.processes())
	c, err := m.RunInShell(context.Background(), alice, runInput(id, "wait", atOnce, timeout(3_600_000)))
	if sh.gone {
		wantCode(rt, err, core.CodeShellClosed)
		return
	}
	must(rt, err)
	m.useShell(id)
	sh.runs++
	m.envs[sh.env].runs++
	m.commands[c.ID], m.endings[c.ID] = id, m.process(n)
}

// read reads a shell, which is a use of its environment also where it is closed, but
// restores nothing.
func (m *agedModel) read(rt *rapid.T) {
	id := some(rt, m.shells)
	sh := m.shells[id]
	_, err := m.ReadShell(context.Background(), alice, core.ReadShellInput{ShellRef: core.ShellRef{ShellID: id}})
	must(rt, err)
	if env := m.envs[sh.env]; !env.gone {
		m.use(sh.env)
	}
	if !sh.gone {
		m.useShell(id)
	}
}

func (m *agedModel) wait(rt *rapid.T) {
	m.clock.pass(rapid.SampledFrom([]time.Duration{
		time.Second, 11 * time.Minute, 59 * time.Minute, time.Hour, 40 * time.Hour, 99 * time.Hour, 210 * time.Hour,
	}).Draw(rt, "time"))
}

func (m *agedModel) reap(*rapid.T) {
	m.Reap()
	for _, things := range []map[string]*agedThing{m.envs, m.shells} {
		for _, thing := range things {
			if thing.runs == 0 && m.clock.time().Sub(thing.used) > thing.idle && m.clock.time().After(m.spared) {
				thing.over++
			}
		}
	}
}

func (m *agedModel) restartIt(*rapid.T) {
	m.restart()
	m.spared = m.clock.time().Add(longestRespite)
	for id := range m.commands { // they are lost, and their end is a use
		c := m.await(id)
		m.envs[c.EnvironmentID].runs--
		m.use(c.EnvironmentID)
	}
	clear(m.commands)
	for _, sh := range m.shells {
		if !sh.gone {
			sh.gone, sh.runs = true, 0
			m.use(sh.env) // it was closed, which is one too
		}
	}
}

func (m *agedModel) check(rt *rapid.T) {
	m.t = rt
	for id, env := range m.envs {
		got := m.environment(id)
		m.compare(rt, id, env, got.State == core.StateArchived)
		if !env.gone && !got.LastActivityAt.Equal(env.used) {
			rt.Fatalf("%s was used at %v, want %v", id, got.LastActivityAt, env.used)
		}
		if !env.gone && (got.ArchivesAt == nil) != (env.runs > 0) {
			rt.Fatalf("%s, in which %d run, archives at %v", id, env.runs, got.ArchivesAt)
		}
	}
	for id, sh := range m.shells {
		got := m.shell(id)
		if m.envs[sh.env].gone && !sh.gone && sh.runs == 0 {
			sh.gone = got.State == core.ShellClosed // with its environment
		}
		m.compare(rt, id, sh, got.State == core.ShellClosed)
	}
}

// compare fails where a thing was ended that may not be, or was not that must be.
func (m *agedModel) compare(rt *rapid.T, id string, thing *agedThing, ended bool) {
	idle := m.clock.time().Sub(thing.used)
	switch {
	case ended == thing.gone:
	case !ended:
		rt.Fatalf("%s is there again", id)
	case thing.runs > 0 || idle < thing.idle:
		rt.Fatalf("%s is ended after %v, while %d run", id, idle, thing.runs)
	default:
		thing.gone = true
	}
	if thing.over >= 2 && !thing.gone {
		rt.Fatalf("%s is there still after %v", id, idle)
	}
}
