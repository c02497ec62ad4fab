//go:build faults

package faults

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Variable names the environment variable with the file's path.
const Variable = "FAULTS_FILE"

var (
	path = os.Getenv(Variable)
	mu   sync.Mutex
	last string // the line that is counted for
	seen int    // steps since
)

// At is a step of what a caller asked for. Its error is EIO, where it is to fail.
func At(step, of string) error { return reach(step, of, false) }

// Tick is a step of what the service does by itself now and then: it can fail, but is
// not traced and kills nothing, since nobody could tell when it comes.
func Tick(step, of string) error { return reach(step, of, true) }

// reach does its work on another thread: the one of the step may have the rights of an
// environment's user for the moment, and the file is not that user's.
func reach(step, of string, tick bool) error {
	if path == "" {
		return nil
	}
	done := make(chan error)
	go func() { done <- heed(step, of, tick) }()
	return <-done
}

func heed(step, of string, tick bool) error {
	mu.Lock()
	defer mu.Unlock()
	line := read()
	if line != last {
		last, seen = line, 0
	}
	name := strings.TrimSpace(step + " " + of)
	command, rest, _ := strings.Cut(line, " ")
	switch {
	case command == "fail":
		return fail(name, rest)
	case command == "trace" && !tick:
		return trace(name)
	case command == "kill" && !tick && meant(name, rest):
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // nothing more happens, however late the signal comes
	case command == "once" && !tick && meant(name, rest):
		return failure(name)
	}
	return nil
}

// read gives the file's line, or "".
func read() string {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		panic(err)
	}
	return strings.TrimSpace(string(text))
}

func trace(name string) error {
	f, err := os.OpenFile(path+".trace", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(name + "\n")
	return err
}

// meant says whether rest, "N" or "N NAME", means this step.
func meant(name, rest string) bool {
	number, wanted, _ := strings.Cut(rest, " ")
	if wanted != "" && wanted != name {
		return false
	}
	seen++
	return seen == count(number)
}

// fail fails where rest, "PREFIX N", means this step.
func fail(name, rest string) error {
	at := strings.LastIndexByte(rest, ' ')
	if !strings.HasPrefix(name, rest[:max(at, 0)]) {
		return nil
	}
	if seen++; seen%count(rest[at+1:]) != 0 {
		return nil
	}
	return failure(name)
}

func failure(name string) error { return fmt.Errorf("%s: %w", name, syscall.EIO) }

func count(number string) int {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		panic(fmt.Sprintf("%s says %q, which is no number of steps", Variable, number))
	}
	return n
}
