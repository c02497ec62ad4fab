package core_test

import (
	"testing"

	"envapi/core"
)

func TestKeys(t *testing.T) {
	for name, want := range map[string]string{
		"enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f", "space": " ",
		"delete": "\x1b[3~", "insert": "\x1b[2~", "page-up": "\x1b[5~", "page-down": "\x1b[6~",
		"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
		"f1": "\x1bOP", "f4": "\x1bOS", "f5": "\x1b[15~", "f10": "\x1b[21~", "f12": "\x1b[24~",
		"ctrl-a": "\x01", "ctrl-c": "\x03", "ctrl-d": "\x04", "ctrl-z": "\x1a",
		"ctrl-space": "\x00", "ctrl-[": "\x1b", "ctrl-\\": "\x1c", "ctrl-]": "\x1d", "ctrl-^": "\x1e", "ctrl-_": "\x1f",
		"alt-b": "\x1bb", "alt-enter": "\x1b\r", "alt-ctrl-c": "\x1b\x03", "ctrl-alt-c": "\x1b\x03", "shift-a": "A", "alt-shift-a": "\x1bA",
		"shift-tab": "\x1b[Z", "shift-up": "\x1b[1;2A", "alt-up": "\x1b[1;3A", "ctrl-right": "\x1b[1;5C", "ctrl-shift-left": "\x1b[1;6D",
		"shift-ctrl-alt-end": "\x1b[1;8F", "shift-f1": "\x1b[1;2P", "ctrl-delete": "\x1b[3;5~", "alt-f12": "\x1b[24;3~", "a": "a",
		"Enter": "\r", "PAGE-UP": "\x1b[5~", "Ctrl+C": "\x03", "ctrl-C": "\x03", "Ctrl+Shift+Left": "\x1b[1;6D",
	} {
		if got, err := core.KeyBytes(name); err != nil || got != want {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"", "A", "alt-A", "+", "ctrl-", "ctrl-enter", "ctrl-1", "ctrl-ctrl-c", "shift-space", "f13", "f0", "alt", "alt-", "é", "\n", "hello", "shift-1"} {
		_, err := core.KeyBytes(name)
		wantField(t, err, "keys")
	}
}
