package cgroup

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// counter is a number in a control file that is kept open.
type counter struct {
	fd   int
	key  string // what it stands behind in its line; "": it is all that there is
	unit int64
}

// noCounter is one of which nothing is known.
var noCounter = counter{fd: -1}

// open opens the file, for writing too where that is possible.
func (c *counter) open(folder, file, key string, unit int64) error {
	path := filepath.Join(folder, file)
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", file, err)
	}
	*c = counter{fd: fd, key: key, unit: unit}
	return nil
}

// unknown is the value of what nobody counts.
const unknown = -1

// value reads the number; unknown where there is no such file.
func (c *counter) value() int64 {
	if c.fd < 0 {
		return unknown
	}
	var content [1024]byte
	n, err := unix.Pread(c.fd, content[:], 0)
	if err != nil {
		return unknown
	}
	return parse(content[:n], c.key) * c.unit
}

// reset lets a high-water mark begin anew: with any write in both versions, but
// before Linux 6.12 not in version 2.
func (c *counter) reset() bool {
	if c.fd < 0 {
		return false
	}
	_, err := unix.Pwrite(c.fd, []byte("0"), 0)
	return err == nil
}

func (c *counter) close() {
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
		c.fd = -1
	}
}

// parse gives the number behind a key, or the only one; 0 where there is none.
func parse(content []byte, key string) int64 {
	for line := range bytes.Lines(content) {
		fields := bytes.Fields(line)
		if key != "" {
			if len(fields) != 2 || string(fields[0]) != key {
				continue
			}
			fields = fields[1:]
		}
		if len(fields) != 1 {
			return 0
		}
		n, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return 0
}

// memoryBytes says how much memory a group uses, without the files that nobody
// has looked at lately: the kernel takes those away as soon as it needs to.
func (h *hierarchy) memoryBytes(folder string) (int64, bool) {
	usage, idle := "memory.usage_in_bytes", "total_inactive_file"
	if h.version == 2 {
		usage, idle = "memory.current", "inactive_file"
	}
	all, err := os.ReadFile(filepath.Join(folder, usage))
	if err != nil {
		return 0, false
	}
	stat, err := os.ReadFile(filepath.Join(folder, "memory.stat"))
	if err != nil {
		return 0, false
	}
	return max(parse(all, "")-parse(stat, idle), 0), true
}
