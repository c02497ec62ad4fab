package user

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"envapi/sandbox/proctree"
	"envapi/sandbox/supervisor"
)

// EndLeftovers ends every process whose uid is from first up to before end,
// which belong to environments and to nothing else. A service that was killed
// leaves them only where a command had just killed its init.
func (h *Host) EndLeftovers(ctx context.Context, first, end int) error {
	names, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return err
	}
	done := map[int]bool{}
	var failures []error
	for _, name := range names {
		status, err := os.ReadFile(name)
		uid := realUID(status)
		if err != nil || uid < first || uid >= end || done[uid] {
			continue // it has ended, or is none of ours
		}
		done[uid] = true
		h.config.Log.Warn("an earlier service left processes; they are ended", "uid", uid)
		if err := supervisor.Sweep(ctx, h.config.Launcher, uid, h.config.Log); err != nil {
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 {
		return fmt.Errorf("cannot end what an earlier service left: %w", errors.Join(failures...))
	}
	return nil
}

// realUID gives the real uid of a /proc/PID/status, -1 where there is none.
func realUID(status []byte) int {
	id, _, _ := strings.Cut(proctree.Field(status, "Uid"), "\t")
	if uid, err := strconv.Atoi(id); err == nil {
		return uid
	}
	return -1
}
