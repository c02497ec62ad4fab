package app

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"envapi/internal/testbin"
)

// A reader of standard output that goes away must not kill the program: it has
// commands to end and records to write.
func TestAClientThatGoesAwayEndsTheProgramInOrder(t *testing.T) {
	cmd := exec.Command(testbin.Path(t, "envapi-mcp"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "ENVAPI_DATA_DIR=" + filepath.Join(t.TempDir(), "data"), "ENVAPI_UID_RANGE=" + testbin.UIDRange()}
	var log bytes.Buffer
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
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
	_ = out.Close()
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n") // its answer finds no reader
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(log.String(), "cannot write to the client") {
		t.Errorf("it ended with %v:\n%s", cmd.ProcessState, log.String())
	}
}
