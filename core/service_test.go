package core_test

import (
	"testing"

	"envapi/core"
)

func TestAServiceWithoutAPartOrALimitIsRefused(t *testing.T) {
	whole := newWorld(t).config
	for name, lacking := range map[string]func(*core.Config){
		"no store":          func(c *core.Config) { c.Store = nil },
		"no folders":        func(c *core.Config) { c.Workspaces = nil },
		"no logs":           func(c *core.Config) { c.Logs = nil },
		"no sandbox":        func(c *core.Config) { c.Sandbox = nil },
		"no log":            func(c *core.Config) { c.Log = nil },
		"no limits":         func(c *core.Config) { c.Limits = core.Limits{} },
		"one is zero":       func(c *core.Config) { c.Limits.RunningCommands = 0 },
		"too few processes": func(c *core.Config) { c.Limits.Processes = 15 },
		"no timeout":        func(c *core.Config) { c.Limits.MaxTimeout = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			c := whole
			lacking(&c)
			if s, err := core.New(t.Context(), c); err == nil {
				must(t, s.Close())
				t.Error("it was made")
			}
		})
	}
}
