package app

import (
	"context"
	"errors"
	"os"

	"envapi/core"
	"envapi/internal/config"
	"envapi/internal/mcpserver"
	"envapi/tools"
)

const usageMCP = `envapi-mcp serves envapi to an assistant of this user over standard input and
output (MCP). It needs no token and no keyring.

  envapi-mcp             with the settings of the environment
  envapi-mcp --version
  envapi-mcp --help

One dash does as well as two. The settings are environment variables that begin
with ENVAPI_; .env.example lists them all. A file .env is not read, since the
folder that an assistant works in may be anyone's. The data folder is its own, so
that it can run beside envapi-http.
`

// RunMCP is the program envapi-mcp: it serves until its input ends or the
// context does, and gives the exit code.
func RunMCP(ctx context.Context, p Process) int {
	shareProcessors()
	_, code, done := parseArgs(config.ProgramMCP, usageMCP, p)
	if done {
		return code
	}
	c, err := config.Load(config.Source{
		Program: config.ProgramMCP, Environ: p.Environ, Dir: p.Dir, Root: os.Geteuid() == 0,
	})
	if err != nil {
		return fail(config.ProgramMCP, p, "cannot start with these settings", err)
	}
	c.MaxRequestsPerSecond = 0 // there is one client, and nobody whom it could crowd out
	log := newLog(c, p.Stderr)
	parts, err := openParts(ctx, config.ProgramMCP, Setup{Config: c, Log: log})
	if err != nil {
		return fail(config.ProgramMCP, p, "cannot start", err)
	}
	log.Info("envapi-mcp is serving", "version", Version(), "tier", parts.sandbox.Tier(), "data_folder", c.DataDir)
	server := mcpserver.New(mcpserver.Config{
		Operations: tools.Operations(), Service: parts.service, Version: Version(), Log: log,
	})
	err = server.ServeStdio(ctx, p.Stdin, p.Stdout, core.LocalCaller())
	if errors.Is(err, context.Canceled) {
		err = nil // by a signal
	}
	if err = errors.Join(err, within(stopBound, parts.close)); err != nil {
		return fail(config.ProgramMCP, p, "did not end well", err)
	}
	return 0
}
