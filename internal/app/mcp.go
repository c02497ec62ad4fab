package app

import (
	"context"
	"errors"
	"os"
	"time"

	"envapi/core"
	"envapi/internal/config"
	"envapi/internal/mcpserver"
	"envapi/tools"
)

// answerBound is how long the client of envapi-mcp is still answered while everything is
// ended.
const answerBound = 10 * time.Second

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
		return startFailed(ctx, config.ProgramMCP, p, err)
	}
	log.Info("envapi-mcp is serving", "version", Version(), "tier", parts.sandbox.Tier(), "data_folder", c.DataDir)
	server := mcpserver.New(mcpserver.Config{
		Operations: tools.Operations(), Service: parts.service, Version: Version(), Log: log,
	})
	serve := func(ctx context.Context) error {
		return server.ServeStdio(ctx, p.Stdin, p.Stdout, core.LocalCaller())
	}
	if err := errors.Join(parts.serveLocal(ctx, serve, c.StopGrace), within(stopBound, parts.close)); err != nil {
		return fail(config.ProgramMCP, p, "did not end well", err)
	}
	return 0
}

// serveLocal serves one client until there is no more input, or, once the context has
// ended, until what runs has ended in a grace and the client was told. At the end of the
// input there is no grace: the client is gone.
func (p *parts) serveLocal(ctx context.Context, serve func(context.Context) error, grace time.Duration) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	forget := context.AfterFunc(ctx, func() {
		p.service.Drain(grace)
		ended <- within(answerBound, p.service.Close) // answers who waits
		stop()
	})
	defer forget() // a signal that comes later finds the parts being closed
	err := serve(serving)
	if !errors.Is(err, context.Canceled) {
		return err // a Drain that is under way ends with the service
	}
	return <-ended
}
