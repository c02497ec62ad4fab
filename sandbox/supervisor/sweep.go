package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"envapi/sandbox/protocol"
)

// sweeps is how often a sweep is tried. Where Landlock does not prevent it, a
// process of the uid may kill an init in the microsecond in which that has its
// uid, and must be as lucky each time.
const sweeps = 8

// Sweep ends every process that has a host uid. An init that takes the uid has
// it for itself before it is ready (stage alone): this makes one and ends it.
func Sweep(ctx context.Context, l *Launcher, uid int, log *slog.Logger) error {
	setup := protocol.Setup{ID: uid, DropGroups: true, Workspace: "/"}
	var failures error
	for range sweeps {
		box, err := Launch(ctx, l, Options{ID: "sweep", Setup: setup, Log: log})
		if err == nil {
			return box.Close()
		}
		failures = err
		if ctx.Err() != nil || errors.Is(err, errClosing) {
			break
		}
	}
	return fmt.Errorf("cannot end the processes of uid %d: %w", uid, failures)
}
