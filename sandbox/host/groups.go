package host

import (
	"fmt"
	"log/slog"

	"golang.org/x/sys/unix"

	"envapi/sandbox/cgroup"
)

// openGroups finds the service's cgroups. They are named after the folder that no
// other service may use, as what it is and not as what it is called: so no two
// services share them, and one that starts again finds its own.
func openGroups(private string, log *slog.Logger) (*cgroup.Parent, error) {
	var is unix.Stat_t
	if err := unix.Stat(private, &is); err != nil {
		return nil, fmt.Errorf("cannot name the cgroups of this service: %w", err)
	}
	name := fmt.Sprintf("envapi-%x-%x", is.Dev, is.Ino)
	return cgroup.Open(cgroup.Options{Name: name, Log: log}), nil
}
