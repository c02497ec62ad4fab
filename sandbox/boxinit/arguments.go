package boxinit

import (
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"envapi/sandbox/protocol"
)

// argumentsOf gives a process's arguments as it shows them, cut, with spaces between
// them; "" where it hides them, or reading them takes too long.
func (s *server) argumentsOf(pid int) string {
	shown, _ := patiently(s, func() string {
		f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err != nil {
			return ""
		}
		defer f.Close()
		buffer := make([]byte, protocol.MaxCommand+utf8.UTFMax)
		n, _ := f.ReadAt(buffer, 0)
		return joined(buffer[:max(n, 0)])
	})
	return shown
}

// joined gives arguments that each end with a NUL as one text.
func joined(arguments []byte) string {
	text := strings.TrimRight(string(arguments), "\x00 ")
	return cut(legible(strings.ReplaceAll(text, "\x00", " ")), protocol.MaxCommand)
}

// bracketed is the name of a process that has no arguments.
func bracketed(name string) string { return "[" + legible(name) + "]" }

// legible makes a text of what may hold anything.
func legible(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }

// cut gives the beginning of a text, whole characters of it.
func cut(s string, longest int) string {
	if len(s) <= longest {
		return s
	}
	for longest > 0 && !utf8.RuneStart(s[longest]) {
		longest--
	}
	return s[:longest]
}
