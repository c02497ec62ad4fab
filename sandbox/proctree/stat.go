package proctree

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// stat is what is read of a /proc/PID/stat (proc(5)).
type stat struct {
	ended  bool // it is a zombie, and does nothing any more
	parent int
	birth  uint64 // when it began, in ticks since the host did
}

// The places of the fields behind the name.
const (
	stateField  = 0
	parentField = 1
	birthField  = 19
)

func statOf(pid int) (stat, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	return parseStat(content)
}

// parseStat counts the fields behind the name, which may hold anything.
func parseStat(content []byte) (stat, error) {
	var s stat
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	if len(fields) <= birthField {
		return s, fmt.Errorf("cannot read the stat of a process: it has %d fields", len(fields))
	}
	s.ended = fields[stateField] == "Z" || fields[stateField] == "X"
	var err error
	if s.parent, err = strconv.Atoi(fields[parentField]); err != nil {
		return s, fmt.Errorf("cannot read the parent of a process: %w", err)
	}
	if s.birth, err = strconv.ParseUint(fields[birthField], 10, 64); err != nil {
		return s, fmt.Errorf("cannot read when a process began: %w", err)
	}
	return s, nil
}
