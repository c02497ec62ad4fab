package testbin_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"envapi/internal/testbin"
)

func TestMain(m *testing.M) { os.Exit(testbin.Run(m)) }

func TestAReadyProgramIsTakenFromItsFolder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(testbin.Variable, dir)
	want := filepath.Join(dir, "envapi-init")
	if err := os.WriteFile(want, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := testbin.Init(t); got != want {
		t.Errorf("Init gave %s, want %s", got, want)
	}
}

func TestAProgramIsBuiltStaticAndOnce(t *testing.T) {
	if os.Getenv(testbin.Variable) != "" && os.Getuid() != 0 {
		t.Skip("in the user's pass, go's caches are root's")
	}
	t.Setenv(testbin.Variable, "")
	path := testbin.Path(t, "smoke")
	first, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "version", "-m", path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "CGO_ENABLED=0") {
		t.Errorf("it is no static Go program: %v %s", err, out)
	}
	again, err := os.Stat(testbin.Path(t, "smoke"))
	if err != nil || !again.ModTime().Equal(first.ModTime()) {
		t.Errorf("it was built again: %v", err)
	}
}
