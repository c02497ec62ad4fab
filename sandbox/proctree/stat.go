package proctree

import (
	"bytes"
	"fmt"
	"strconv"
)

// Stat is what is read of a /proc/PID/stat (proc(5)).
type Stat struct {
	Name    string // of the program, or what it calls itself; it may hold anything
	State   byte   // the letter of its first thread
	Parent  int
	Birth   uint64 // when it began, in ticks since the host did
	Ticks   uint64 // of a processor that it has used
	Threads int
	Pages   int64 // resident
	// Exit is a zombie's wait status, where its owner reads it.
	Exit uint32
}

// Ended says whether it is a zombie, and does nothing any more. One whose first
// thread alone has ended goes on.
func (s Stat) Ended() bool { return (s.State == 'Z' || s.State == 'X') && s.Threads <= 1 }

// The places of the fields behind the name.
const (
	stateField   = 0
	parentField  = 1
	userField    = 11
	systemField  = 12
	threadsField = 17
	birthField   = 19
	pagesField   = 21
	exitField    = 49
)

// StatOf reads the stat of a process.
func StatOf(pid int) (Stat, error) {
	content, err := readFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Stat{}, err
	}
	return ParseStat(content)
}

// ParseStat counts the fields behind the name, which may hold anything.
func ParseStat(content []byte) (Stat, error) {
	begin, end := bytes.IndexByte(content, '('), bytes.LastIndexByte(content, ')')
	if begin < 0 || end < begin {
		return Stat{}, fmt.Errorf("cannot read the stat of a process: it has no name")
	}
	fields := bytes.Fields(content[end+1:])
	if len(fields) <= exitField || len(fields[stateField]) != 1 {
		return Stat{}, fmt.Errorf("cannot read the stat of a process: it has %d fields", len(fields))
	}
	var failure error
	number := func(field int) uint64 {
		n, err := strconv.ParseUint(string(fields[field]), 10, 64)
		if err != nil {
			failure = fmt.Errorf("cannot read the stat of a process: %w", err)
		}
		return n
	}
	signed := func(field int) int64 {
		n, err := strconv.ParseInt(string(fields[field]), 10, 64)
		if err != nil {
			failure = fmt.Errorf("cannot read the stat of a process: %w", err)
		}
		return n
	}
	s := Stat{
		Name:    string(content[begin+1 : end]),
		State:   fields[stateField][0],
		Parent:  int(signed(parentField)),
		Birth:   number(birthField),
		Ticks:   number(userField) + number(systemField),
		Threads: int(signed(threadsField)),
		Pages:   signed(pagesField),
		Exit:    uint32(signed(exitField)), //nolint:gosec // an int there
	}
	return s, failure
}
