package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// leakRows look for what the service may have left behind in what it started.
func leakRows() []Row {
	return []Row{
		{ID: "descriptors", Stands: "D2, CVE-2024-21626", Tries: "to find a descriptor above 2", Expect: everywhere("harmless: only 0, 1 and 2"), run: findDescriptors},
		{ID: "descriptor-roots", Stands: "CVE-2024-21626, CVE-2016-9962", Tries: "to leave by a descriptor that is a folder", Expect: everywhere(allRefused), run: leaveByDescriptor},
		{ID: "working-directory", Stands: "CVE-2024-21626", Tries: "to have a working directory outside of its root", Expect: everywhere("harmless: it is inside"), run: lookAtWorkingDirectory},
		{ID: "environment", Stands: "D2", Tries: "to find the service's variables", Expect: everywhere("harmless: only the documented ones"), run: findVariables},
		{ID: "keyrings", Stands: "D2, D6", Tries: "to find keys of the service's in /proc/keys", Expect: Expect{Namespace: "harmless: none", User: "", Directory: ""}, run: findKeys},
		{ID: "old-root", Stands: "pivot", Tries: "to find the host's root below a mount", Expect: Expect{Namespace: "harmless: none of the host's"}, run: findOldRoot},
		{ID: "process-group", Stands: "D14", Tries: "to share a session with the service", Expect: everywhere("harmless: its own"), run: lookAtSession},
	}
}

// ownDescriptor says whether a descriptor is the Go runtime's of this very
// process: what it waits with, what it reads its cpu limit from, and the folder
// that is being read.
func ownDescriptor(target string) bool {
	return strings.HasPrefix(target, "anon_inode:") || strings.HasPrefix(target, "/proc/") ||
		strings.HasPrefix(filepath.Base(target), "cpu.cfs_") || filepath.Base(target) == "cpu.max"
}

func findDescriptors(*Targets) string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return refused(err)
	}
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		target, gone := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || n <= 2 || gone != nil || ownDescriptor(target) {
			continue
		}
		return escaped("descriptor %d is %s", n, target)
	}
	return harmless("only 0, 1 and 2")
}

func leaveByDescriptor(*Targets) string {
	var verdicts []string
	for fd := range 16 {
		verdicts = append(verdicts, tried(unix.Fchdir(fd), fmt.Sprintf("descriptor %d is a folder", fd)))
	}
	return all(verdicts...)
}

func lookAtWorkingDirectory(*Targets) string {
	dir, err := unix.Getcwd(scratch[:])
	if err != nil {
		return refused(err)
	}
	path := string(scratch[:max(dir-1, 0)])
	if !strings.HasPrefix(path, "/") { // getcwd(2): "(unreachable)" comes before it
		return escaped("it is %s", path)
	}
	return harmless("it is inside")
}

// documented are the variables that a command has.
var documented = []string{
	"PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "PAGER", "GIT_PAGER", "GIT_CONFIG_NOSYSTEM", variable,
}

func findVariables(*Targets) string {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !slices.Contains(documented, name) {
			return escaped("there is %s", name)
		}
	}
	return harmless("only the documented ones")
}

func findKeys(*Targets) string {
	data, err := os.ReadFile("/proc/keys")
	if err != nil && !os.IsNotExist(err) {
		return refused(err)
	}
	for line := range strings.Lines(string(data)) {
		if !strings.Contains(line, "_ses") && !strings.Contains(line, "_uid") && strings.Contains(line, "user") {
			return escaped("there is %s", strings.TrimSpace(line))
		}
	}
	return harmless("none")
}

// findOldRoot looks for mounts that show more of a file system of the host than
// the folders that were chosen.
func findOldRoot(*Targets) string {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return refused(err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 10 {
			continue
		}
		root, point, kind := fields[3], fields[4], line[strings.Index(line, " - ")+3:]
		own := strings.HasPrefix(kind, "tmpfs ") || strings.HasPrefix(kind, "proc ") || strings.HasPrefix(kind, "devpts ")
		if root == "/" && !own {
			return escaped("all of a file system of the host is at %s", point)
		}
	}
	if _, err := os.Stat("/etc/shadow"); err == nil {
		return escaped("/etc/shadow is there")
	}
	return harmless("none of the host's")
}

func lookAtSession(*Targets) string {
	session, err := unix.Getsid(0)
	if err != nil {
		return refused(err)
	}
	if session != os.Getpid() {
		return escaped("its session is %d's", session)
	}
	return harmless("its own")
}
