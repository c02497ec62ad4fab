package attack

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// refused is the verdict on a call that failed; an error that is none of the
// system's is shown as it is.
func refused(err error) string {
	var died death
	if errors.As(err, &died) {
		return died.Error()
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return "failed: " + err.Error()
	}
	return "refused " + unix.ErrnoName(errno)
}

func escaped(format string, args ...any) string { return "ESCAPED: " + fmt.Sprintf(format, args...) }

func harmless(what string) string { return "harmless: " + what }

// tried is the verdict on a call that must not succeed.
func tried(err error, what string) string {
	if err != nil {
		return refused(err)
	}
	return escaped("%s", what)
}

// allRefused is the verdict on several tries that were all refused.
const allRefused = "harmless: all are refused"

// all is the verdict on several tries of which none may succeed: which errno
// each of them gets depends on what the host has.
func all(verdicts ...string) string {
	for _, v := range verdicts {
		if !strings.HasPrefix(v, "refused ") {
			return v
		}
	}
	return allRefused
}
