package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// service is an envapi-http that was started for this run.
type service struct {
	cmd   *exec.Cmd
	said  bytes.Buffer  // on standard error; to be read after ended
	ended chan struct{} // closed when the process was waited for
	url   string
	token string
}

// keyringSetting begins the setting by which a service does without --dev.
const keyringSetting = "ENVAPI_KEYRING_URL="

// startService starts the program on a free port of loopback, with settings beside
// those that every run has, and returns when it is ready.
func startService(ctx context.Context, program, data string, settings ...string) (*service, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	s := &service{url: "http://" + addr, ended: make(chan struct{})}
	if program, err = filepath.Abs(program); err != nil {
		return nil, err
	}
	s.cmd = exec.CommandContext(ctx, program)
	dev := !slices.ContainsFunc(settings, func(s string) bool { return strings.HasPrefix(s, keyringSetting) })
	if dev {
		s.cmd.Args = append(s.cmd.Args, "--dev")
	}
	s.cmd.Dir = filepath.Dir(data) // where no .env is
	s.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
		"ENVAPI_ADDR=" + addr, "ENVAPI_DATA_DIR=" + data,
		"ENVAPI_MAX_REQUESTS_PER_SECOND=0", "ENVAPI_MAX_TERMINALS_PER_ACCOUNT=100000",
	}
	if os.Geteuid() == 0 { // not those of a service that may run here
		s.cmd.Env = append(s.cmd.Env, "ENVAPI_UID_RANGE=400000-465535")
	}
	s.cmd.Env = append(s.cmd.Env, settings...)
	s.cmd.Stderr = &s.said
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	if err := s.waitReady(ctx); err != nil {
		s.stop()
		return nil, fmt.Errorf("cannot start the service: %w\n%s", err, s.said.String())
	}
	if !dev {
		return s, nil
	}
	token, err := os.ReadFile(filepath.Join(data, "dev-token"))
	if err != nil {
		s.stop()
		return nil, err
	}
	s.token = strings.TrimSpace(string(token))
	return s, nil
}

// waitReady asks until the service is ready, for half a minute.
func (s *service) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := s.call(ctx, http.MethodGet, "/ready", nil, nil)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-s.ended:
			return errors.New("it has ended")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *service) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	<-s.ended
}

// call makes one request and decodes its answer into out, unless that is nil.
func (s *service) call(ctx context.Context, method, path string, body, out any) error {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, content)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, data)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

func (s *service) create(ctx context.Context) (string, error) {
	var made struct{ ID string }
	err := s.call(ctx, http.MethodPost, "/v1/environments", map[string]any{"name": "bench"}, &made)
	return made.ID, err
}

// exec runs true by a shell.
func (s *service) exec(ctx context.Context, environment string) error {
	return s.run(ctx, map[string]any{"environment_id": environment, "command": "true"})
}

// execArgv runs true without a shell.
func (s *service) execArgv(ctx context.Context, environment string) error {
	return s.run(ctx, map[string]any{"environment_id": environment, "argv": []string{"true"}})
}

func (s *service) run(ctx context.Context, body map[string]any) error {
	var c outcome
	if err := s.call(ctx, http.MethodPost, "/v1/exec", body, &c); err != nil {
		return err
	}
	return c.check()
}

func (s *service) remove(ctx context.Context, environment string) error {
	return s.call(ctx, http.MethodDelete, "/v1/environments/"+environment, nil, nil)
}

// createAndExec times the making of an environment and its first exec, and
// removes it afterwards.
func (s *service) createAndExec(ctx context.Context) (time.Duration, error) {
	var id string
	took, err := timed(func() (err error) {
		if id, err = s.create(ctx); err != nil {
			return err
		}
		return s.execArgv(ctx, id)
	})
	if err != nil {
		return 0, err
	}
	return took, s.remove(ctx, id)
}
