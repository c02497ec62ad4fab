package core_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"envapi/core"
	"envapi/internal/random"
)

// model is what must be true of a world after any sequence of calls.
type model struct {
	w         *world
	outcomes  map[string]string // by command: what became of it, "running" if nothing yet
	commands  map[string]string // by command: its environment
	processes map[string]*fakeProcess
	inShell   map[string]string // by command: its shell, or ""
	shells    map[string]*modelShell
	archived  map[string]bool   // by environment
	words     map[string]string // by environment: what its folder holds
}

// modelShell is what must be true of a shell.
type modelShell struct {
	env, state string // open, or why it is closed
	bash       *fakeShell
}

func TestAnySequenceOfCallsIsAsTheModelSays(t *testing.T) {
	w := newWorld(t, func(w *world) { w.host.needsUID = true })
	random.Check(t, func(rt *rapid.T) {
		w.t = rt
		m := &model{w, map[string]string{}, map[string]string{}, map[string]*fakeProcess{}, map[string]string{}, map[string]*modelShell{}, map[string]bool{}, map[string]string{}}
		for _, env := range w.environments() {
			m.delete(env.ID)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create":  m.create,
			"run":     m.run,
			"exit":    m.exit,
			"open":    m.openShell,
			"inShell": m.runInShell,
			"close":   m.closeShell,
			"quit":    m.quit,
			"kill":    m.kill,
			"archive": func(rt *rapid.T) { m.archive(m.someEnvironment(rt)) },
			"restore": m.restore,
			"fork":    m.fork,
			"reset":   func(rt *rapid.T) { m.reset(m.someEnvironment(rt)) },
			"delete":  func(rt *rapid.T) { m.delete(m.someEnvironment(rt)) },
			"restart": func(*rapid.T) { m.lose(); w.restart() },
			"crash":   func(*rapid.T) { m.lose(); w.crash() },
			"":        m.check,
		})
	})
}

func (m *model) someEnvironment(rt *rapid.T) string {
	all := m.w.environments()
	if len(all) == 0 {
		rt.Skip("no environment")
	}
	return rapid.SampledFrom(all).Draw(rt, "environment").ID
}

func (m *model) create(rt *rapid.T) {
	room := m.hasRoom()
	env, err := m.w.CreateEnvironment(context.Background(), alice, core.CreateEnvironmentInput{})
	if !room {
		wantCode(rt, err, core.CodeQuotaExceeded)
		return
	}
	must(rt, err)
	m.words[env.ID] = env.ID
	m.w.folders.put(env.ID, env.ID)
}

// active gives how many environments count as active.
func (m *model) active() (n int) {
	for _, env := range m.w.environments() {
		if !m.archived[env.ID] {
			n++
		}
	}
	return n
}

func (m *model) hasRoom() bool { return m.active() < testLimits.EnvironmentsPerProfile }

func (m *model) archive(env string) {
	m.endAll(env, "killed environment_archived")
	m.closeAll(env, core.CloseEnvironmentArchived)
	m.w.archive(env)
	m.archived[env] = true
}

func (m *model) restore(rt *rapid.T) {
	env := m.someEnvironment(rt)
	room := m.hasRoom()
	_, err := m.w.RestoreEnvironment(context.Background(), alice, refTo(env))
	m.used(rt, env, room, err)
}

// used says whether a call could use an environment, which is then restored.
func (m *model) used(rt *rapid.T, env string, room bool, err error) bool {
	if m.archived[env] && !room {
		wantCode(rt, err, core.CodeQuotaExceeded)
		return false
	}
	delete(m.archived, env)
	return true
}

func (m *model) fork(rt *rapid.T) {
	env := m.someEnvironment(rt)
	room := testLimits.EnvironmentsPerProfile - m.active()
	fork, err := m.w.ForkEnvironment(context.Background(), alice, forkOf(env))
	needs := 1
	if m.archived[env] {
		needs = 2 // it is restored
	}
	if room < needs {
		wantCode(rt, err, core.CodeQuotaExceeded)
		return
	}
	must(rt, err)
	delete(m.archived, env)
	m.words[fork.ID] = m.words[env]
}

func (m *model) run(rt *rapid.T) {
	env := m.someEnvironment(rt)
	n, room := len(m.w.host.processes()), m.hasRoom()
	c, err := m.w.Exec(context.Background(), alice, execInput(env, "wait", noWait))
	if !m.used(rt, env, room, err) {
		return
	}
	if m.running(env) >= testLimits.RunningCommands {
		wantCode(rt, err, core.CodeQuotaExceeded)
		return
	}
	must(rt, err)
	m.outcomes[c.ID], m.commands[c.ID], m.processes[c.ID] = "running", env, m.w.process(n)
}

func (m *model) running(env string) (n int) {
	for id, outcome := range m.outcomes {
		if m.commands[id] == env && outcome == "running" {
			n++
		}
	}
	return n
}

func (m *model) someCommand(rt *rapid.T) string {
	if len(m.commands) == 0 {
		rt.Skip("no command")
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m.commands))).Draw(rt, "command")
}

func (m *model) exit(rt *rapid.T) {
	id := m.someCommand(rt)
	code := rapid.IntRange(0, 255).Draw(rt, "code")
	m.end(id, fmt.Sprintf("exited %d", code))
	m.processes[id].exit(code)
	m.w.await(id)
}

func (m *model) kill(rt *rapid.T) {
	id := m.someCommand(rt)
	m.end(id, "killed signal")
	m.w.signal(id, "KILL")
}

func (m *model) reset(env string) {
	m.endAll(env, "killed environment_reset")
	m.closeAll(env, core.CloseEnvironmentReset)
	room := m.hasRoom()
	_, err := m.w.ResetEnvironment(context.Background(), alice, refTo(env))
	if m.archived[env] && !room {
		wantCode(m.w.t, err, core.CodeQuotaExceeded)
		return
	}
	must(m.w.t, err)
	delete(m.archived, env)
	m.words[env] = ""
}

func (m *model) delete(env string) {
	maps.DeleteFunc(m.commands, func(_, of string) bool { return of == env })
	maps.DeleteFunc(m.outcomes, func(id, _ string) bool { return m.commands[id] == "" })
	maps.DeleteFunc(m.shells, func(_ string, sh *modelShell) bool { return sh.env == env })
	delete(m.archived, env)
	delete(m.words, env)
	_, err := m.w.DeleteEnvironment(context.Background(), alice, core.EnvironmentRef{EnvironmentID: env})
	must(m.w.t, err)
}

func (m *model) lose() {
	m.endAll("", "lost service_stopped")
	m.closeAll("", core.CloseServiceRestarted)
}

func (m *model) openShell(rt *rapid.T) {
	env := m.someEnvironment(rt)
	open := 0
	for _, sh := range m.shells {
		if sh.env == env && sh.state == "open" {
			open++
		}
	}
	room := m.hasRoom()
	got, err := m.w.OpenShell(context.Background(), alice, core.OpenShellInput{EnvironmentID: env})
	if !m.used(rt, env, room, err) {
		return
	}
	if open >= testLimits.Shells {
		wantCode(rt, err, core.CodeQuotaExceeded)
		return
	}
	must(rt, err)
	m.shells[got.ID] = &modelShell{env, "open", m.w.fakeShell(len(m.w.host.shells) - 1)}
}

func (m *model) someShell(rt *rapid.T) string {
	if len(m.shells) == 0 {
		rt.Skip("no shell")
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m.shells))).Draw(rt, "shell")
}

// runsIn gives the command that runs in a shell, or "".
func (m *model) runsIn(shell string) string {
	for id, of := range m.inShell {
		if of == shell && m.outcomes[id] == "running" {
			return id
		}
	}
	return ""
}

func (m *model) runInShell(rt *rapid.T) {
	id := m.someShell(rt)
	sh, before := m.shells[id], m.runsIn(id)
	n := len(m.w.host.processes())
	c, err := m.w.RunInShell(context.Background(), alice, runInput(id, "wait", atOnce))
	switch {
	case sh.state != "open":
		wantCode(rt, err, core.CodeShellClosed)
	case before != "":
		wantCode(rt, err, core.CodeShellBusy)
	case m.running(sh.env) >= testLimits.RunningCommands:
		wantCode(rt, err, core.CodeQuotaExceeded)
	default:
		must(rt, err)
		m.outcomes[c.ID], m.commands[c.ID], m.processes[c.ID], m.inShell[c.ID] = "running", sh.env, m.w.process(n), id
	}
}

func (m *model) closeShell(rt *rapid.T) {
	id := m.someShell(rt)
	m.end(m.runsIn(id), "killed shell_closed")
	m.closed(m.shells[id], core.CloseByCaller)
	m.w.closeShell(id, rapid.Bool().Draw(rt, "keep"))
}

// quit ends the bash of a shell in which nothing runs.
func (m *model) quit(rt *rapid.T) {
	id := m.someShell(rt)
	if m.runsIn(id) != "" {
		rt.Skip("a command runs")
	}
	m.closed(m.shells[id], core.CloseExited)
	m.shells[id].bash.exit(1)
	eventually(rt, "closed", func() bool { return m.w.shell(id).State == core.ShellClosed })
}

func (m *model) closed(sh *modelShell, reason string) {
	if sh.state == "open" {
		sh.state = reason
	}
}

// closeAll closes the shells in env, or all.
func (m *model) closeAll(env, reason string) {
	for _, sh := range m.shells {
		if env == "" || sh.env == env {
			m.closed(sh, reason)
		}
	}
}

func (m *model) checkShells(rt *rapid.T) {
	got, want := map[string]string{}, map[string]string{}
	for id, sh := range m.shells {
		want[id] = sh.state
	}
	page, err := m.w.ListShells(context.Background(), alice, core.ListShellsInput{Paging: core.Paging{Limit: 200}})
	must(rt, err)
	for _, sh := range page.Items {
		got[sh.ID] = string(sh.State)
		if sh.State == core.ShellClosed {
			got[sh.ID] = sh.CloseReason
		}
	}
	if !maps.Equal(got, want) && page.NextCursor == "" {
		rt.Fatalf("got the shells %v, want %v", got, want)
	}
}

// endAll ends the commands that run in env, or in all.
func (m *model) endAll(env, outcome string) {
	for id, of := range m.commands {
		if env == "" || of == env {
			m.end(id, outcome)
		}
	}
}

func (m *model) end(id, outcome string) {
	if m.outcomes[id] == "running" {
		m.outcomes[id] = outcome
	}
}

func (m *model) check(rt *rapid.T) {
	m.w.t = rt
	m.w.wantWhole()
	for id, word := range m.words {
		m.w.wantWord(id, word)
	}
	for _, env := range m.w.environments() {
		if (env.State == core.StateArchived) != m.archived[env.ID] {
			rt.Fatalf("%s is %s", env.ID, env.State)
		}
	}
	m.checkShells(rt)
	got := map[string]string{}
	page, err := m.w.ListCommands(context.Background(), alice, core.ListCommandsInput{Paging: core.Paging{Limit: 200}})
	must(rt, err)
	for _, c := range page.Items {
		got[c.ID] = outcomeOf(c)
	}
	if !maps.Equal(got, m.outcomes) && page.NextCursor == "" {
		rt.Fatalf("got %v, want %v", got, m.outcomes)
	}
}
