package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"envapi/core"
	"envapi/internal/devkeyring"
)

// service is an envapi-http that was started for this run, with a stand-in for keyring
// in this process and a data folder of its own.
type service struct {
	folder  string // holds data, and nothing else
	url     string
	metrics string // the address of its metrics
	keyring *devkeyring.Keyring
	forger  *devkeyring.Keyring // with a key that nobody published
	cmd     *exec.Cmd
	said    buffer        // on standard error
	ended   chan struct{} // closed when the process was waited for
	close   []func()      // in reverse order, after the process has ended
}

const audience = "envapi"

// readyWithin is how long a service may take to start, on a busy machine.
const readyWithin = 2 * time.Minute

// soakSettings bound what hostile clients can take of the machine, so that their limits
// are met in a short time, and let what is old go soon.
func soakSettings() []string {
	return []string{
		"ENVAPI_MAX_PROCESSES=64", "ENVAPI_MAX_MEMORY_BYTES=268435456",
		"ENVAPI_MAX_OUTPUT_LOG_BYTES=1048576", "ENVAPI_MAX_DISK_BYTES=67108864", "ENVAPI_MAX_FILES=20000",
		"ENVAPI_MAX_SHELLS=8", "ENVAPI_MAX_RUNNING_COMMANDS=8", "ENVAPI_MAX_ENVIRONMENTS_PER_PROFILE=8",
		"ENVAPI_COMMAND_RETENTION_MS=60000", "ENVAPI_IDEMPOTENCY_RETENTION_MS=60000",
		"ENVAPI_REAPER_INTERVAL_MS=1000",
	}
}

// startService starts the program and returns when it is ready.
func startService(ctx context.Context, program string, settings ...string) (*service, error) {
	s := &service{ended: make(chan struct{})}
	if err := s.start(ctx, program, settings); err != nil {
		s.cleanUp()
		return nil, err
	}
	return s, nil
}

func (s *service) start(ctx context.Context, program string, settings []string) (err error) {
	if s.folder, err = makeFolder(); err != nil {
		return err
	}
	s.close = append(s.close, func() { _ = os.RemoveAll(s.folder) })
	issuer, err := s.startKeyring(ctx)
	if err != nil {
		return err
	}
	addr, metrics, err := freeAddresses(ctx)
	if err != nil {
		return err
	}
	s.url, s.metrics = "http://"+addr, "http://"+metrics+"/metrics"
	if program, err = filepath.Abs(program); err != nil {
		return err
	}
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), program) // stop ends it
	s.cmd.Dir = s.folder                                             // where no .env is
	s.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir(),
		"ENVAPI_ADDR=" + addr, "ENVAPI_METRICS_ADDR=" + metrics, "ENVAPI_DATA_DIR=" + s.data(), "ENVAPI_KEYRING_URL=" + issuer,
		"ENVAPI_STOP_GRACE_MS=0",
	}, settings...)
	if os.Geteuid() == 0 {
		s.cmd.Env = append(s.cmd.Env, "ENVAPI_UID_RANGE="+uidRange())
	}
	s.cmd.Stderr = &s.said
	if err := s.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	if err := s.waitReady(ctx); err != nil {
		_ = s.cmd.Process.Kill()
		<-s.ended
		return fmt.Errorf("cannot start the service: %w\n%s", err, s.said.String())
	}
	return nil
}

// uidRange gives host uids that no other service has that may run here.
func uidRange() string {
	const first, each = 1_200_000_000, 5_000
	mine := first + os.Getpid()%40_000*each
	return fmt.Sprintf("%d-%d", mine, mine+each-1)
}

// makeFolder makes a folder that the environments' users may pass through.
func makeFolder() (string, error) {
	folder, err := os.MkdirTemp("", "envapi-soak-")
	if err != nil {
		return "", err
	}
	return folder, os.Chmod(folder, 0o711) //nolint:gosec // it is to be passed through
}

func (s *service) data() string { return filepath.Join(s.folder, "data") }

// startKeyring serves the stand-in and gives its address.
func (s *service) startKeyring(ctx context.Context) (string, error) {
	l, err := devkeyring.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	url := "http://" + l.Addr().String()
	for _, k := range []**devkeyring.Keyring{&s.keyring, &s.forger} {
		key, err := devkeyring.NewKey()
		if err != nil {
			return "", err
		}
		if *k, err = devkeyring.New(url, audience, key); err != nil {
			return "", err
		}
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.keyring.Serve(serving, l)
	}()
	s.close = append(s.close, func() { stop(); <-done })
	return url, nil
}

// token makes one for an account, with every scope.
func (s *service) token(account string) (string, error) {
	t, err := s.keyring.Mint(devkeyring.Grant{
		Owner: core.Owner{Account: account, Profile: "default"}, Scopes: core.AllScopes, Lifetime: devkeyring.MaxLifetime,
	})
	return t.Raw, err
}

// freeAddresses gives two that nobody listens at.
func freeAddresses(ctx context.Context) (a, b string, err error) {
	var found [2]string
	for i := range found {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		defer func() { _ = l.Close() }() // both are held until both are known
		found[i] = l.Addr().String()
	}
	return found[0], found[1], nil
}

// waitReady asks until the service is ready.
func (s *service) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		body, err := get(ctx, s.url+"/ready")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", err, body)
		case <-s.ended:
			return errors.New("it has ended")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// get gives what an address answers to anybody, with an error where that is not 200.
func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Close = true // a connection that waits for another question would be counted
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %s", url, resp.Status)
	}
	return body, err
}

// stop ends the service as an operator would and says what was wrong with that, or with
// what it said of itself.
func (s *service) stop() error {
	defer s.cleanUp()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(readyWithin):
		_ = s.cmd.Process.Kill()
		<-s.ended
		return errors.New("the service did not end after SIGTERM")
	}
	var wrong []error
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		wrong = append(wrong, fmt.Errorf("the service ended with %d", code))
	}
	return errors.Join(append(wrong, s.said.complaints()...)...)
}

func (s *service) cleanUp() {
	for len(s.close) > 0 {
		last := len(s.close) - 1
		s.close[last]()
		s.close = s.close[:last]
	}
}

// buffer collects what a process says while it runs.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// complaints are the lines at level error, and panics; the first few.
func (b *buffer) complaints() []error {
	const most = 10
	var found []error
	for line := range bytes.Lines([]byte(b.String())) {
		if bytes.Contains(line, []byte("level=ERROR")) || bytes.HasPrefix(line, []byte("panic:")) || bytes.Contains(line, []byte("DATA RACE")) {
			if found = append(found, fmt.Errorf("the service said: %s", bytes.TrimSpace(line))); len(found) == most {
				break
			}
		}
	}
	return found
}
