package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"envapi/internal/testbin"
)

// closesAgain can be closed again, also where waiting for the program has closed it.
type closesAgain struct{ io.WriteCloser }

func (c closesAgain) Close() error {
	if err := c.WriteCloser.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// assistant is an envapi-mcp with a client of its own.
type assistant struct {
	client
	cmd *exec.Cmd
	in  io.Closer // ends its input
}

// assist starts one with a grace, in milliseconds.
func assist(t *testing.T, ms int) assistant {
	t.Helper()
	cmd := exec.Command(testbin.Path(t, "envapi-mcp"))
	cmd.Env, cmd.Dir = append(local(t, "namespace"), fmt.Sprintf("ENVAPI_STOP_GRACE_MS=%d", ms)), t.TempDir()
	log := &buffer{}
	cmd.Stderr = log
	pipe, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("envapi-mcp said:\n%s", log)
		}
	})
	in := closesAgain{pipe}
	c := connectGo(t, &mcp.IOTransport{Reader: io.NopCloser(out), Writer: in})
	return assistant{c, cmd, in}
}

// ends waits until it has ended well.
func (a assistant) ends(t *testing.T) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- a.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(patience):
		_ = a.cmd.Process.Kill()
		<-ended
		t.Errorf("it did not end in %v", patience)
	}
}

func TestOverStdioAStopLetsWhatRunsComeToItsEnd(t *testing.T) {
	t.Parallel()
	a := assist(t, 120_000)
	p := player{t, a}
	asking := object{"wait_ms": 0}
	for name, value := range asks {
		asking[name] = value
	}
	c := as[command](t, p.call("exec", asking))
	p.call("read_output", object{"command_id": c.ID, "wait_ms": 45000})
	later := begun(a, "get_command", object{"command_id": c.ID, "wait_ms": 45000})
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	err := eventually(func() error {
		_, err := a.call(context.Background(), "exec", object{"command": "true", "wait_ms": 45000})
		if err == nil || !strings.Contains(err.Error(), "stopping") {
			return fmt.Errorf("new work gives %s", fmt.Sprint(err))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p.call("write_input", object{"command_id": c.ID, "data": "it\n"})
	if c = commandOf(t, later); c.Status != "exited" || c.exit() != 5 || c.Stdout.Text != "asks\ngot it\n" {
		t.Errorf("who waited got %s", c.brief())
	}
	a.ends(t)
}

// At the end of its input the client is gone, and nobody waits.
func TestOverStdioTheEndOfTheInputHasNoGrace(t *testing.T) {
	t.Parallel()
	a, m := assist(t, 3_600_000), mark()
	player{t, a}.call("exec", object{"command": "sleep " + m, "wait_ms": 0})
	mustRun(t, m, 1)
	_ = a.in.Close()
	a.ends(t)
	mustRun(t, m, 0)
}
