package namespace_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestShellsWithoutWatches: other boxes, or other programs of the service's user,
// may have all the inotify watches that the kernel gives one. It is tried in a user
// namespace that gives none, in which the tests of shells must hold as ever.
func TestShellsWithoutWatches(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can map the uids that these tests need; root's pass runs this")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const script = `for limit in watches instances; do echo 0 >/proc/sys/user/max_inotify_$limit || exit; "$0" "$@" || exit; done`
	cmd := exec.Command("sh", "-c", script, self, "-test.run", "^TestConformance$/^shells$/^(A1|A3|A8|A55)", "-test.v")
	all := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1 << 30}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: all, GidMappings: all, GidMappingsEnableSetgroups: true}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS: TestConformance/shells/") < 2 {
		t.Errorf("%v\n%s", err, out)
	}
}
