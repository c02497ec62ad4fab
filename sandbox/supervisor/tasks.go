package supervisor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"envapi/sandbox/proctree"
)

// tasksOf counts the processes and threads of a real uid, as far as they can be
// seen: the kernel also counts those in other containers.
func tasksOf(uid int) int {
	names, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return 0
	}
	tasks := 0
	for _, name := range names {
		status, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		if first(status, "Uid") == strconv.Itoa(uid) {
			n, _ := strconv.Atoi(first(status, "Threads"))
			tasks += n
		}
	}
	return tasks
}

// first gives the first value of a line of a /proc/PID/status, by its name.
func first(status []byte, name string) string {
	value, _, _ := strings.Cut(proctree.Field(status, name), "\t")
	return value
}
