package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// bare runs a program as a child and waits for it.
func bare(args ...string) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		return timed(exec.CommandContext(ctx, args[0], args[1:]...).Run)
	}
}

// wrapped runs a program in bubblewrap with the view that a box gives: the
// system read-only, a folder at /workspace, everything else private.
func wrapped(folder string, program ...string) (func(context.Context) (time.Duration, error), error) {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, fmt.Errorf("cannot measure against bubblewrap: %w", err)
	}
	workspace := filepath.Join(folder, "bwrap")
	if err := os.MkdirAll(workspace, 0o700); err != nil {
		return nil, err
	}
	args := []string{bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib64"} {
		target, err := os.Readlink(dir)
		switch {
		case err == nil:
			args = append(args, "--symlink", target, dir)
		case !os.IsNotExist(err):
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
		"--bind", workspace, "/workspace", "--chdir", "/workspace")
	return bare(append(args, program...)...), nil
}
