package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"envapi/internal/config"
	"envapi/internal/keyring"
	"envapi/internal/mcpserver"
	"envapi/internal/pace"
	"envapi/internal/rest"
	"envapi/sandbox/attack"
	"envapi/tools"
)

const usageHTTP = `envapi-http serves envapi over HTTP: REST below /v1, MCP at /mcp.

  envapi-http            with the settings of the environment and of .env
  envapi-http --dev      without keyring, for this machine alone
  envapi-http doctor     what can contain commands on this host, and what cannot
  envapi-http backup     copy the data folder, also while the service serves
  envapi-http check      what a start would mend in the data folder, and what is damaged
  envapi-http --version
  envapi-http --help

One dash does as well as two. The settings are environment variables that begin
with ENVAPI_; .env.example lists them all. Without --dev one is required:
ENVAPI_KEYRING_URL.
`

// The bounds of a connection. That on writing an answer is set by package rest
// when there is something to write, since a call may wait for core.MaxWait
// before.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10 // a token has 8 KiB at most
	// drainBound is how long calls get to be answered at the end, once no command is
	// waited for any more. Those that wait are answered at once.
	drainBound = 10 * time.Second
	// pingBound is how long the store gets to answer /ready.
	pingBound = 2 * time.Second
)

// RunHTTP is the program envapi-http: it serves until the context ends and
// gives the exit code.
func RunHTTP(ctx context.Context, p Process) int {
	shareProcessors()
	if len(p.Args) > 0 {
		switch p.Args[0] {
		case "doctor":
			return runDoctor(ctx, p)
		case "backup":
			return runBackup(ctx, p)
		case "check":
			return runCheck(ctx, p)
		case attackerName: // this program inside a box of the doctor's
			return attack.Main(p.Args[1:], p.Stdout)
		}
	}
	o, code, done := parseArgs(config.ProgramHTTP, usageHTTP, p)
	if done {
		return code
	}
	c, err := config.Load(config.Source{
		Program: config.ProgramHTTP, Dev: o.dev, Environ: p.Environ, Dir: p.Dir, Root: os.Geteuid() == 0,
	})
	if err != nil {
		return fail(config.ProgramHTTP, p, "cannot start with these settings", err)
	}
	s, err := StartHTTP(ctx, Setup{Config: c, Dev: o.dev, Log: newLog(c, p.Stderr)})
	if err != nil {
		return startFailed(ctx, config.ProgramHTTP, p, err)
	}
	if s.dev != nil {
		s.dev.print(p.Stdout, s.URL)
	}
	err = s.wait(ctx)
	if err = errors.Join(err, within(c.StopGrace+stopBound, s.Close)); err != nil {
		return fail(config.ProgramHTTP, p, "did not end well", err)
	}
	return 0
}

// HTTP is envapi-http while it serves.
type HTTP struct {
	URL string // where it listens, without a final slash

	*parts
	keyring *keyring.Keyring
	dev     *dev // nil without --dev
	server  *http.Server
	grace   time.Duration // see Close
	endWork func() error  // ends what the service does; tests hold it up
	failed  chan error    // what ended serving before Close
}

// StartHTTP opens everything and serves. The caller must Close it.
func StartHTTP(ctx context.Context, c Setup) (_ *HTTP, err error) {
	s := &HTTP{failed: make(chan error, 1), grace: c.StopGrace}
	if s.parts, err = openParts(ctx, config.ProgramHTTP, c); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.endWork = s.service.Close
	if err := s.openKeyring(ctx, c); err != nil {
		return nil, err
	}
	if err := s.openMetrics(ctx, c); err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on ENVAPI_ADDR=%s: %w", c.Addr, err)
	}
	s.URL = "http://" + l.Addr().String()
	s.holder.Address = l.Addr().String()
	if err := s.lock.Describe(s.holder); err != nil {
		_ = l.Close()
		return nil, err
	}
	s.serve(l, c)
	c.Log.Info("envapi-http is serving", "version", Version(), "address", s.holder.Address,
		"tier", s.sandbox.Tier(), "data_folder", c.DataDir)
	return s, nil
}

// openKeyring opens the verifier of tokens, and with dev first the stand-in
// that makes them.
func (s *HTTP) openKeyring(ctx context.Context, c Setup) (err error) {
	k := c.Keyring()
	if c.Dev {
		if s.dev, err = startDev(ctx, c.Config); err != nil {
			return err
		}
		s.closeLater(s.dev.close)
		k.Issuer, k.JWKSURL = devIssuer, s.dev.url+"/.well-known/jwks.json"
	}
	k.Log = c.Log
	if s.keyring, err = keyring.New(k); err != nil {
		return err
	}
	s.closeLater(s.keyring.Close)
	if c.Dev { // what the stand-in prints shall work at once
		return s.keyring.Await(ctx)
	}
	return nil
}

func (s *HTTP) serve(l net.Listener, c Setup) {
	operations := tools.Operations()
	requests := pace.New(c.MaxRequestsPerSecond, nil) // one for both doors
	mcp := mcpserver.New(mcpserver.Config{Operations: operations, Service: s.service, Version: Version(), Log: c.Log, Pace: requests.Take})
	s.server = &http.Server{
		Handler: rest.New(rest.Config{
			Operations: operations, Service: s.service, Verifier: s.keyring, MCP: mcp.Handler(), Ready: s.ready, Pace: requests.Take,
			AllowedHosts: c.AllowedHosts, PublicURL: c.PublicURL, Log: c.Log, Version: Version(),
		}),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	go func() { s.failed <- s.server.Serve(l) }()
}

// wait returns when the context ends, or with what ended serving before.
func (s *HTTP) wait(ctx context.Context) error {
	select {
	case err := <-s.failed:
		return fmt.Errorf("cannot serve any more: %w", err)
	case <-ctx.Done():
		return nil
	}
}

// Close says on /ready that it drains, lets what runs come to its end within the grace,
// answers the calls that wait and ends every command. Then it takes no more connections
// and closes everything. Until then it answers, so that who asks learns why it does no
// new work, and who waits how his command ended.
func (s *HTTP) Close() error {
	s.service.Drain(s.grace)
	ctx, cancel := context.WithTimeout(context.Background(), drainBound)
	defer cancel()
	err := s.endWork() // answers those that Shutdown waits for
	if late := s.server.Shutdown(ctx); late != nil {
		err = errors.Join(err, s.server.Close())
	}
	return errors.Join(err, s.close())
}

// ready is what /ready answers.
func (s *HTTP) ready(ctx context.Context) rest.Readiness {
	keys := s.keyring.Status()
	r := rest.Readiness{Status: rest.StatusReady, Sandbox: s.service.Report(), Keyring: keyringReadiness(keys)}
	ctx, cancel := context.WithTimeout(ctx, pingBound)
	defer cancel()
	if r.Store.Ready = s.store.Ping(ctx) == nil; !r.Store.Ready {
		r.Store.Detail = "the store does not answer"
	}
	r.Draining = drainReadiness(s.service)
	switch {
	case r.Draining != nil:
		r.Status = rest.StatusDraining
	case !keys.Fetched:
		r.Status = rest.StatusStarting
	case !r.Keyring.Ready || !r.Store.Ready:
		r.Status = rest.StatusFailing
	}
	return r
}
