// Package app puts the parts together into the two programs, envapi-http and
// envapi-mcp, and takes them apart again when they end.
//
// It decides nothing about callers or commands. What it holds: a program that
// cannot be what its settings ask for does not start; two services never share
// a data folder; and an end, by a signal or at the end of the input, answers
// who waits, ends every command and comes within a bound.
package app

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"envapi/internal/config"
)

// stopBound is how long an end may take before the program ends anyway. Boxes
// end with it in any case.
const stopBound = 20 * time.Second

// version is set by the linker: -X envapi/internal/app.version=….
var version string

// Version gives the version of the program, from the linker or else from what
// the build recorded.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version
	}
	return "unversioned"
}

// Process is what a program gets from the operating system.
type Process struct {
	Args           []string // without the program's own name
	Environ        []string
	Dir            string // the working directory
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// ThisProcess gives what this process got.
func ThisProcess() Process {
	return Process{
		Args: os.Args[1:], Environ: os.Environ(), Dir: ".",
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}
}

// Signals gives a context that ends at the first SIGINT, SIGTERM or SIGHUP,
// which comes when the terminal is gone; a program that was started with nohup
// goes on then. A second one ends the process at once. A reader of standard output or error that goes
// away does not: SIGPIPE is caught, not ignored, since what is ignored is so
// for every command too.
func Signals() context.Context {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	end := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		end = append(end, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), end...)
	context.AfterFunc(ctx, stop)
	return ctx
}

// Setup is what a program is started with.
type Setup struct {
	config.Config
	Dev      bool         // with a stand-in for keyring
	InitPath string       // the program of the box init, for tests; "" is the embedded one
	Log      *slog.Logger // never nil
}

// options are what the command line of a program can say.
type options struct {
	dev     bool
	version bool
}

// parseArgs reads the command line of a program. Where that is all there is to do, done
// is true and code the program's exit code.
func parseArgs(program config.Program, usage string, p Process) (o options, code int, done bool) {
	define := func(flags *flag.FlagSet) {
		flags.BoolVar(&o.version, "version", false, "")
		if program == config.ProgramHTTP {
			flags.BoolVar(&o.dev, "dev", false, "")
		}
	}
	if code, done = parseFlags(program, usage, p, p.Args, define, noArguments); done {
		return o, code, true
	}
	if o.version {
		_, _ = fmt.Fprintln(p.Stdout, program, Version())
	}
	return o, 0, o.version
}

// parseFlags reads a command line: define names its flags, and fit says what is wrong
// with what was read, of which it gets what is behind the flags. Where that is all there
// is to do, done is true and code the exit code.
func parseFlags(program config.Program, usage string, p Process, args []string,
	define func(*flag.FlagSet), fit func(rest []string) error,
) (code int, done bool) {
	flags := flag.NewFlagSet(string(program), flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	help := flags.Bool("help", false, "")
	flags.BoolVar(help, "h", false, "")
	define(flags)
	err := flags.Parse(args)
	if err == nil && *help {
		_, _ = fmt.Fprint(p.Stdout, usage)
		return 0, true
	}
	if err == nil {
		err = fit(flags.Args())
	}
	if err != nil {
		_, _ = fmt.Fprintf(p.Stderr, "%s: %v; see --help\n", program, err)
		return 2, true
	}
	return 0, false
}

func noArguments(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("there are no arguments, so not %q either", rest[0])
	}
	return nil
}

// printJSON writes what programs read.
func printJSON(w io.Writer, what any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(what)
}

// newLog makes the log that the settings ask for.
func newLog(c config.Config, w io.Writer) *slog.Logger {
	how := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, how))
	}
	return slog.New(slog.NewTextHandler(w, how))
}

// fail says why a program cannot start or go on, and gives its exit code.
func fail(program config.Program, p Process, what string, err error) int {
	_, _ = fmt.Fprintf(p.Stderr, "%s: %s:\n%v\n", program, what, err)
	return 1
}

// startFailed says why a program could not start, and gives the exit code. One that was
// told to stop before it served has not failed.
func startFailed(ctx context.Context, program config.Program, p Process, err error) int {
	if ctx.Err() == nil {
		return fail(program, p, "cannot start", err)
	}
	_, _ = fmt.Fprintf(p.Stderr, "%s: stopped before it served\n", program)
	return 0
}

// within gives the error of do, or another where it takes longer than a bound.
func within(bound time.Duration, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(bound):
		return fmt.Errorf("it did not end within %v", bound)
	}
}
