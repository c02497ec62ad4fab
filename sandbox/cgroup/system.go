package cgroup

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// system is what the host gives, so that tests can have another one: a cgroup
// file system makes and removes the files of a folder with it.
type system struct {
	mountinfo, cgroup string // /proc/self's
	mkdir, rmdir      func(path string) error
	write             func(path, value string) error // to a control file
}

var hostSystem = system{
	mountinfo: "/proc/self/mountinfo",
	cgroup:    "/proc/self/cgroup",
	mkdir:     func(path string) error { return unix.Mkdir(path, 0o755) },
	rmdir:     unix.Rmdir,
	write:     writeFile,
}

// writeFile writes to a control file. It never makes one.
func writeFile(path, value string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(value))
	return err
}

// setting is a value for a control file.
type setting struct {
	file, value string
	optional    bool // not every kernel has it
}

// set writes a setting to a group.
func (s system) set(folder string, to setting) error {
	err := s.write(filepath.Join(folder, to.file), to.value)
	if to.optional && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot set %s to %s: %w", to.file, to.value, err)
	}
	return nil
}
