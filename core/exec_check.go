package core

import (
	"path"
	"strings"
	"time"
	"unicode/utf8"
)

// The sizes of what a command may be given, in bytes.
const (
	maxArgvBytes = 1 << 20
	maxEnvBytes  = 512 << 10
	// maxStringBytes is what Linux lets one argument or variable be: 128 KiB
	// with the NUL that ends it.
	maxStringBytes = 128<<10 - 1
	maxCwdBytes    = 4096
	maxShown       = 4096 // of the command, as it is shown
)

// check refuses what cannot be run.
func (in ExecInput) check(deployment Limits) error {
	if in.Network != nil && *in.Network {
		return Errorf(CodeNetworkRefused, "the environment has no network: leave network out or false")
	}
	return firstError(
		in.checkProgram(),
		in.checkStdin(),
		checkCwd(in.Cwd),
		checkEnv(in.Env),
		checkTimeout(in.TimeoutMS, deployment.MaxTimeout),
	)
}

func (in ExecInput) checkStdin() error {
	switch {
	case len(in.Stdin) > MaxStdinBytes:
		return tooLarge("stdin", MaxStdinBytes)
	case in.TTY == nil:
		return nil
	case in.Stdin != "":
		return invalid("stdin", "stdin and tty are both given: a terminal is typed into with write_input")
	}
	return in.TTY.check("tty.cols", "tty.rows")
}

func (in ExecInput) checkProgram() error {
	switch {
	case in.Command == nil && in.Argv == nil:
		return invalid("command", "command is missing: give command (a script for bash) or argv (a program and its arguments)")
	case in.Command != nil && in.Argv != nil:
		return invalid("argv", "command and argv are both given: give one of them")
	case in.Command != nil:
		return checkScript(*in.Command)
	}
	return checkArgv(in.Argv)
}

func checkScript(script string) error {
	if len(script) > MaxCommandBytes {
		return tooLarge("command", MaxCommandBytes)
	}
	return checkNUL("command", script)
}

func checkArgv(argv []string) error {
	if len(argv) == 0 || argv[0] == "" {
		return invalid("argv", "argv names no program: its first string must be one")
	}
	total := 0
	for _, arg := range argv {
		if len(arg) > maxStringBytes {
			return tooLargePart("argv", "one argument of argv", maxStringBytes)
		}
		if err := checkNUL("argv", arg); err != nil {
			return err
		}
		total += len(arg) + 1
	}
	if total > maxArgvBytes {
		return tooLarge("argv", maxArgvBytes)
	}
	return nil
}

func checkCwd(cwd string) error {
	if len(cwd) > maxCwdBytes {
		return invalid("cwd", "cwd is longer than the %d bytes that a path may have", maxCwdBytes)
	}
	return checkNUL("cwd", cwd)
}

func checkEnv(env map[string]string) error {
	total := 0
	for name, value := range env {
		if !isVariable(name) {
			return invalid("env", "the name %.64q in env is not one of letters, digits and _ that starts with no digit", name)
		}
		if err := checkNUL("env", value); err != nil {
			return err
		}
		size := len(name) + len("=") + len(value)
		if size > maxStringBytes {
			return tooLargePart("env", "one variable of env, with its name,", maxStringBytes)
		}
		total += size + 1
	}
	if total > maxEnvBytes {
		return tooLarge("env", maxEnvBytes)
	}
	return nil
}

func isVariable(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		digit := '0' <= c && c <= '9'
		if !letter && (!digit || i == 0) {
			return false
		}
	}
	return name != ""
}

func checkTimeout(ms *int64, maximum time.Duration) error {
	if ms != nil && (*ms < 1 || *ms > maximum.Milliseconds()) {
		return invalid("timeout_ms", "timeout_ms is %d: give 1 to %d, which is the deployment's limit", *ms, maximum.Milliseconds())
	}
	return nil
}

// timeout is when a command is to be killed.
func (l Limits) timeout(ms *int64) time.Duration {
	if ms == nil {
		return min(l.DefaultTimeout, l.MaxTimeout)
	}
	return time.Duration(*ms) * time.Millisecond
}

// directory is where a command or shell starts, as seen inside. It is not
// cleaned: "link/.." is not always where it seems.
func directory(workspace, cwd string) string {
	switch {
	case cwd == "":
		return workspace
	case path.IsAbs(cwd):
		return cwd
	}
	return workspace + "/" + cwd
}

// shown is the command for people to read.
func (in ExecInput) shown() string {
	if in.Command != nil {
		return shownText(*in.Command)
	}
	return shownText(quoted(in.Argv))
}

func shownText(text string) string {
	if len(text) > maxShown {
		text = text[:wholeChars([]byte(text[:maxShown]))] + "…"
	}
	return strings.ToValidUTF8(text, string(utf8.RuneError))
}

// quoted gives arguments as a shell would take them.
func quoted(argv []string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = arg
		if arg == "" || strings.ContainsFunc(arg, needsQuotes) {
			words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

func needsQuotes(c rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%", c)
}

func checkNUL(field, s string) error {
	if strings.ContainsRune(s, 0) {
		return invalid(field, "%s contains a NUL byte, which no argument, variable or path can", field)
	}
	return nil
}

func tooLarge(field string, allowed int) error {
	return tooLargePart(field, field, allowed)
}

// tooLargePart says what in a field is too long.
func tooLargePart(field, part string, allowed int) error {
	return Errorf(CodeTooLarge, "%s is longer than %d bytes: write it to a file first", part, allowed).
		With("allowed_bytes", allowed).With("field", field)
}
