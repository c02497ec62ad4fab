package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// The names of what is measured of output.
const (
	loudCommand = "head -c 1G /dev/zero through a command's log"
	loudPipe    = "the same into a pipe that Go reads"
)

const (
	// loudWarmup is how many rounds fill the log of the environment's command and
	// the page cache before any counts.
	loudWarmup = 1
	// flatBytes is by how much the service may grow while it carries output, however
	// much that is: buffers, and what the collector has not taken back.
	flatBytes = 32 << 20
)

// loud is how output is carried.
type loud struct {
	samples      []sample
	before, peak memory // of the service, resident
}

// takeOutput has one command write so many bytes, again and again, beside a bare
// pipe.
func (r *report) takeOutput(ctx context.Context, s *service, bytes int64, rounds int) error {
	id, err := s.create(ctx)
	if err != nil {
		return err
	}
	head := []string{"head", "-c", strconv.FormatInt(bytes, 10), "/dev/zero"}
	if r.loud.before, err = s.resident("VmRSS:"); err != nil {
		return err
	}
	r.loud.samples, err = measure(ctx, []contender{
		{loudCommand, func(ctx context.Context) (time.Duration, error) {
			return timed(func() error {
				return s.run(ctx, map[string]any{"environment_id": id, "argv": head, "wait_ms": 45_000, "output_bytes": 0})
			})
		}},
		{loudPipe, func(ctx context.Context) (time.Duration, error) {
			return timed(func() error { return readAll(ctx, head, bytes) })
		}},
	}, loudWarmup, rounds)
	if err != nil {
		return err
	}
	if r.loud.peak, err = s.resident("VmHWM:"); err != nil {
		return err
	}
	return s.remove(ctx, id)
}

// readAll runs a program and reads its output away, as the service reads it.
func readAll(ctx context.Context, program []string, want int64) error {
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var got int64
	for buffer := make([]byte, 64<<10); ; {
		n, err := out.Read(buffer)
		got += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if got != want {
		return fmt.Errorf("%d bytes came, %d were written", got, want)
	}
	return cmd.Wait()
}

// resident gives a number of the service's that /proc calls by a name: its resident
// memory now, or the most that it ever was.
func (s *service) resident(name string) (memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return memory(kib << 10), err
		}
	}
	return 0, fmt.Errorf("cannot find %s of the service", name)
}

// flat says in words that the service grew with the output, or nothing.
func (l loud) flat() string {
	if l.peak-l.before <= flatBytes {
		return ""
	}
	return fmt.Sprintf("over its bound: carrying output takes the service from %s to %s, at most %s more is allowed", l.before, l.peak, memory(flatBytes))
}
