package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/internal/require"
	"envapi/internal/testbin"
)

// patience is how long a test waits for what must come at once, on a machine
// that is busy with other tests.
const patience = 45 * time.Second

// tiers are the tiers to test on: as root there is no directory tier, since no
// command ever runs as root.
func tiers() []string {
	if os.Getuid() == 0 {
		return []string{"namespace", "user"}
	}
	return []string{"namespace", "directory"}
}

// onEachTier runs a test against a service of each tier.
func onEachTier(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	for _, tier := range tiers() {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			test(t, start(t, config{tier: tier}))
		})
	}
}

// config says how to start a service.
type config struct {
	tier    string            // "" is namespace
	data    string            // the data folder; "" makes a new one
	env     map[string]string // settings beside those that every test has
	keyring bool              // by the keyring in env instead of --dev
	program string            // of package testbin; "" is envapi-http
	prepare func(*exec.Cmd)   // what else its process is to have
}

// service is a running envapi-http.
type service struct {
	config
	url string
	rest
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process was waited for
	status error         // what Wait gave; valid after ended
	output *buffer       // its standard error
}

// start starts envapi-http and returns when it is ready. It is stopped at the
// end of the test, which fails if that is not clean.
func start(t *testing.T, c config) *service {
	t.Helper()
	s := launch(t, c)
	err := eventually(func() error {
		select {
		case <-s.ended:
			return final{fmt.Errorf("the service ended: %w", s.status)}
		default:
		}
		status, body, err := s.probe(context.Background(), "/ready")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("/ready answered %d: %s", status, body)
		}
		return err
	})
	if err != nil {
		s.missing(t, err)
	}
	if !c.keyring {
		s.token = readFile(t, filepath.Join(s.data, "dev-token"))
	}
	return s
}

// missing ends a test whose service did not start: as a skip where this host
// cannot have the namespace tier, see package require. That is asked without
// the service, which may be what is wrong.
func (s *service) missing(t *testing.T, err error) {
	t.Helper()
	if s.tier == "namespace" {
		unshare := exec.Command("unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", os.TempDir())
		if out, err := unshare.CombinedOutput(); err != nil {
			require.Feature(t, "userns", string(out))
		}
	}
	t.Fatalf("%v\n%s", err, s.output)
}

// launch starts envapi-http without waiting for it.
func launch(t *testing.T, c config) *service {
	t.Helper()
	if c.tier == "" {
		c.tier = "namespace"
	}
	if c.data == "" {
		c.data = filepath.Join(passable(t), "data")
	}
	if c.env["ENVAPI_UID_RANGE"] == "" {
		c.env = maps.Clone(c.env)
		if c.env == nil {
			c.env = map[string]string{}
		}
		c.env["ENVAPI_UID_RANGE"] = testbin.UIDRange()
	}
	addr := freeAddress(t)
	s := &service{config: c, url: "http://" + addr, ended: make(chan struct{}), output: &buffer{}}
	s.rest = rest{base: s.url}
	var args []string
	if !c.keyring {
		args = append(args, "--dev")
	}
	s.cmd = exec.Command(testbin.Path(t, cmp.Or(c.program, "envapi-http")), args...)
	s.cmd.Dir = t.TempDir() // where no .env is
	s.cmd.Env = settings(c, map[string]string{"ENVAPI_ADDR": addr})
	s.cmd.Stderr = s.output
	if c.prepare != nil {
		c.prepare(s.cmd)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		s.status = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		s.stop(t)
		s.sweep(t)
	})
	return s
}

// passable makes a folder that other users may pass through, as may those above
// it: the user tier's commands have a uid of their own.
func passable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, open := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(open, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// settings are the environment of a service.
func settings(c config, more map[string]string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir(),
		"ENVAPI_DATA_DIR=" + c.data,
		"ENVAPI_SANDBOX_TIER=" + c.tier,
		"ENVAPI_MAX_REQUESTS_PER_SECOND=0", // tests hurry
		"ENVAPI_STOP_GRACE_MS=0",
	}
	for _, pairs := range []map[string]string{c.env, more} {
		for name, value := range pairs {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// stop ends the service as an operator would.
func (s *service) stop(t *testing.T) {
	t.Helper()
	select {
	case <-s.ended: // a test ended it already
	default:
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		if !s.wait(patience) {
			s.kill()
			t.Errorf("the service did not end in %s after SIGTERM\n%s", patience, s.output)
		} else if s.status != nil {
			t.Errorf("the service ended with %v\n%s", s.status, s.output)
		}
	}
	if t.Failed() {
		t.Logf("the service said:\n%s", s.output)
	}
}

// sweep removes the cgroups that a killed service leaves to the next start on its folder,
// where there was none.
func (s *service) sweep(t *testing.T) {
	t.Helper()
	var status *exec.ExitError
	if !errors.As(s.status, &status) || status.Exited() { // it has removed them itself
		return
	}
	if lock, err := os.Open(filepath.Join(s.data, "envapi.lock")); err == nil {
		defer lock.Close()
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			return // they are another one's
		}
	}
	err := eventually(func() (err error) { // who is in them may be dying
		for _, group := range slices.Backward(s.cgroups(t)) { // those below first
			if gone := unix.Rmdir(group); gone != nil && !errors.Is(gone, unix.ENOENT) {
				err = errors.Join(err, fmt.Errorf("cannot remove %s: %w", group, gone))
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// kill ends the service without a warning.
func (s *service) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

func (s *service) wait(d time.Duration) bool {
	select {
	case <-s.ended:
		return true
	case <-time.After(d):
		return false
	}
}

// restart starts a service on the data folder of one that has ended.
func (s *service) restart(t *testing.T) *service {
	t.Helper()
	return start(t, s.config)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := firstPort + (os.Getpid()*97+int(ports.Add(1)))%(lastPort-firstPort)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// Ports are given out one after the other, below those that the kernel gives to
// whoever asks for any: two tests at one time must not get the same.
const firstPort, lastPort = 10_000, 32_000

var ports atomic.Int32

// buffer collects output of a process while it runs.
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

// final is an error that waiting does not mend.
type final struct{ error }

// eventually tries until there is no error, for as long as patience.
func eventually(try func() error) error { return within(patience, try) }

// within tries until there is no error, for as long as d.
func within(d time.Duration, try func() error) error {
	deadline := time.Now().Add(d)
	for {
		err := try()
		var f final
		if err == nil || errors.As(err, &f) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond) // between two looks, not for a thing
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// probe asks a route without a token.
func (s *service) probe(ctx context.Context, path string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}
