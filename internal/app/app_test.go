package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"envapi/internal/config"
	"envapi/internal/devkeyring"
)

// run runs a program with arguments that end it before it starts anything.
func run(t *testing.T, program func(context.Context, Process) int, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = program(t.Context(), Process{Args: args, Environ: environ, Dir: t.TempDir(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	return code, out.String(), errs.String()
}

func TestTheCommandLine(t *testing.T) {
	for _, c := range []struct {
		name           string
		program        func(context.Context, Process) int
		args           []string
		code           int
		stdout, stderr string
	}{
		{"version", RunHTTP, []string{"--version"}, 0, "envapi-http " + Version() + "\n", ""},
		{"version of envapi-mcp", RunMCP, []string{"-version"}, 0, "envapi-mcp " + Version() + "\n", ""},
		{"one dash", RunHTTP, []string{"-help"}, 0, usageHTTP, ""},
		{"help", RunHTTP, []string{"--help"}, 0, usageHTTP, ""},
		{"help of envapi-mcp", RunMCP, []string{"-h"}, 0, usageMCP, ""},
		{"an unknown flag", RunHTTP, []string{"--port=1"}, 2, "", "envapi-http: flag provided but not defined: -port; see --help\n"},
		{"envapi-mcp has no --dev", RunMCP, []string{"--dev"}, 2, "", "envapi-mcp: flag provided but not defined: -dev; see --help\n"},
		{"an argument", RunHTTP, []string{"serve"}, 2, "", `"serve"`},
		{"an argument of envapi-mcp", RunMCP, []string{"serve"}, 2, "", `"serve"`},
		{"no keyring", RunHTTP, nil, 1, "", "ENVAPI_KEYRING_URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := run(t, c.program, []string{"HOME=/home/u"}, c.args...)
			if code != c.code || stdout != c.stdout || !strings.Contains(stderr, c.stderr) || c.stderr == "" && stderr != "" {
				t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}

// Whoever stops a service that still starts, as an operator's supervisor does, is not
// told that it failed, and not of everything that was cut short.
func TestAStartThatIsStoppedIsNoFailure(t *testing.T) {
	for name, program := range map[string]func(context.Context, Process) int{"envapi-http": RunHTTP, "envapi-mcp": RunMCP} {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		stopped := func(_ context.Context, p Process) int { return program(ctx, p) }
		code, _, said := run(t, stopped, []string{
			"ENVAPI_DATA_DIR=" + filepath.Join(t.TempDir(), "data"), "ENVAPI_ADDR=127.0.0.1:0",
			"ENVAPI_KEYRING_URL=http://127.0.0.1:1", "ENVAPI_LOG_LEVEL=error",
		})
		if code != 0 || said != name+": stopped before it served\n" {
			t.Errorf("%s: code %d, and it said %q", name, code, said)
		}
	}
}

func TestAnEndThatTakesTooLongIsAnError(t *testing.T) {
	release, released := make(chan struct{}), make(chan struct{})
	err := within(time.Millisecond, func() error { <-release; close(released); return nil })
	if err == nil {
		t.Error("no error")
	}
	close(release)
	<-released
	wrong := errors.New("wrong")
	if err := within(time.Minute, func() error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
}

func TestTheLogHasTheFormatAndLevelOfTheSettings(t *testing.T) {
	for format, ok := range map[string]func(string) bool{
		"json": func(s string) bool { return json.Valid([]byte(s)) },
		"text": func(s string) bool { return strings.Contains(s, "msg=seen") },
	} {
		c, err := config.Load(config.Source{Program: config.ProgramMCP, Dir: t.TempDir(), Environ: []string{
			"HOME=/home/u", "ENVAPI_LOG_LEVEL=warn", "ENVAPI_LOG_FORMAT=" + format,
		}})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		log := newLog(c, &b)
		log.Info("unseen")
		log.Warn("seen")
		if !ok(b.String()) || strings.Contains(b.String(), "unseen") {
			t.Errorf("%s: %s", format, b.String())
		}
	}
}

func TestWhatDevPrintsCanBePasted(t *testing.T) {
	d := &dev{url: "http://127.0.0.1:9", token: devkeyring.Token{Raw: "THE-TOKEN", Expires: time.Now()}, tokenFile: "/it's here/dev-token"}
	var b bytes.Buffer
	d.print(&b, "http://127.0.0.1:8008")
	configurations := 0
	for line := range strings.Lines(b.String()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "{") {
			configurations++
			if !json.Valid([]byte(line)) {
				t.Errorf("not JSON: %s", line)
			}
		}
	}
	if configurations != 3 { // Claude Desktop, Cursor, VS Code
		t.Errorf("%d configurations in JSON", configurations)
	}
	for _, want := range []string{
		"not for production", "good until", `TOKEN=$(cat '/it'\''s here/dev-token')`, "THE-TOKEN", "http://127.0.0.1:8008/v1/exec",
		`claude mcp add --transport http envapi http://127.0.0.1:8008/mcp --header "Authorization: Bearer THE-TOKEN"`,
		"Claude Desktop", "Cursor", "VS Code", "http://127.0.0.1:9/token",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in:\n%s", want, b.String())
		}
	}
}
