package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"envapi/internal/testbin"
)

// operator is somebody who runs a service on a machine of his own, as a page takes it:
// the programs in PATH, the service's settings in the environment, and systemctl.
type operator struct {
	config
	home    string
	url     string
	env     []string
	process *exec.Cmd // the service, nil where it is stopped
	said    *buffer   // its log
}

// systemctl is what stands in for it; the test itself starts and stops the service, so
// that somebody waits for it.
const systemctl = `#!/bin/sh
exec curl -sS --fail-with-body -X POST "$SYSTEMD/$1/$2"
`

func newOperator(t *testing.T) *operator {
	t.Helper()
	keyring := startKeyring(t)
	home := passable(t)
	first := start(t, config{ // ends as a skip where this host can have none
		data: filepath.Join(home, "data"), keyring: true, env: map[string]string{"ENVAPI_KEYRING_URL": keyring.url},
	})
	first.stop(t)
	address, metrics := freeAddress(t), freeAddress(t)
	o := &operator{home: home, config: first.config, url: "http://" + address, said: &buffer{}}
	for _, name := range []string{"bin", "work", "backups"} {
		if err := os.Mkdir(filepath.Join(home, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(home, "bin")
	for _, program := range []string{"envapi-http", "envapi-mcp"} {
		if err := os.Symlink(testbin.Path(t, program), filepath.Join(bin, program)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(bin, "systemctl"), []byte(systemctl), 0o755); err != nil {
		t.Fatal(err)
	}
	systemd := httptest.NewServer(http.HandlerFunc(o.manage))
	t.Cleanup(func() {
		systemd.Close()
		if err := o.stop(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	})
	o.env = settings(o.config, map[string]string{
		"ENVAPI_ADDR": address, "ENVAPI_METRICS_ADDR": metrics, "PATH": bin + ":" + os.Getenv("PATH"), "HOME": home,
		"URL": o.url, "METRICS": "http://" + metrics, "TOKEN": keyring.token,
		"BACKUPS": filepath.Join(home, "backups"), "SYSTEMD": systemd.URL,
	})
	if err := o.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

// manage does what systemctl asks for.
func (o *operator) manage(w http.ResponseWriter, r *http.Request) {
	var err error
	switch r.URL.Path {
	case "/start/envapi":
		err = o.start(r.Context())
	case "/stop/envapi":
		err = o.stop(syscall.SIGTERM)
	default:
		err = fmt.Errorf("this systemctl cannot do %s", r.URL.Path)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// start starts the service, unless it runs, and returns when it is ready.
func (o *operator) start(ctx context.Context) error {
	if o.process != nil {
		return nil
	}
	program := exec.Command(filepath.Join(o.home, "bin", "envapi-http"))
	program.Dir, program.Env, program.Stderr = o.home, o.env, o.said
	if err := program.Start(); err != nil {
		return err
	}
	o.process = program
	return eventually(func() error {
		status, body, err := (&service{url: o.url}).probe(ctx, "/ready")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("/ready answered %d: %s", status, body)
		}
		return err
	})
}

// stop ends the service and waits for it.
func (o *operator) stop(signal syscall.Signal) error {
	if o.process == nil {
		return nil
	}
	_ = o.process.Process.Signal(signal) // it may have ended
	err := o.process.Wait()
	o.process = nil
	return err
}

// run runs a script and gives what it says on standard error.
func (o *operator) run(ctx context.Context, script string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // for what hangs
	defer cancel()
	bash := exec.CommandContext(ctx, "bash", "-c", script)
	bash.Dir, bash.Env = filepath.Join(o.home, "work"), o.env
	said := &strings.Builder{}
	bash.Stderr = said
	err := bash.Run()
	return said.String() + "\nThe service said:\n" + o.said.String(), err
}
