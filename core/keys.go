package core

import (
	"fmt"
	"strings"
)

// modifiers are what can be held while a key is pressed, as xterm counts them.
const (
	shift = 1 << iota
	alt
	ctrl
)

var modifiers = map[string]int{"shift-": shift, "alt-": alt, "ctrl-": ctrl}

// letters are the keys that xterm writes as ESC [ letter, and with modifiers as
// ESC [ 1 ; m letter. F1 to F4 are ESC O letter without.
var letters = map[string]string{
	"up": "A", "down": "B", "right": "C", "left": "D", "end": "F", "home": "H",
	"f1": "P", "f2": "Q", "f3": "R", "f4": "S",
}

// numbers are the keys that xterm writes as ESC [ n ~, and with modifiers as
// ESC [ n ; m ~.
var numbers = map[string]string{
	"insert": "2", "delete": "3", "page-up": "5", "page-down": "6",
	"f5": "15", "f6": "17", "f7": "18", "f8": "19", "f9": "20", "f10": "21", "f11": "23", "f12": "24",
}

// plain are the keys that are one byte.
var plain = map[string]string{
	"enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f", "space": " ",
}

// controls are the bytes of ctrl with a key other than a letter.
var controls = map[string]string{
	"space": "\x00", "[": "\x1b", "\\": "\x1c", "]": "\x1d", "^": "\x1e", "_": "\x1f",
}

// keyBytes gives what an xterm sends for a key of that name. Keys that depend on
// the mode of the terminal are those of its normal mode. Names are taken as people
// write them, Enter and Ctrl+C too.
func keyBytes(name string) (string, error) {
	base, held := strings.ReplaceAll(name, "+", "-"), 0
	for again := true; again; {
		again = false
		for prefix, modifier := range modifiers {
			if n := len(prefix); len(base) > n && strings.EqualFold(base[:n], prefix) && held&modifier == 0 {
				base, held, again = base[n:], held|modifier, true
			}
		}
	}
	if len(base) > 1 || held&ctrl != 0 { // a capital letter by itself is not that key
		base = strings.ToLower(base)
	}
	bytes, ok := keyOf(base, held)
	if !ok {
		return "", invalid("keys", "there is no key %.32q: give enter, tab, escape, backspace, delete, insert, space, up, down, left, right, home, end, page-up, page-down, f1 to f12, or ctrl- with a letter or one of space [ \\ ] ^ _; with alt- or shift- before them where a terminal knows that; text goes into data", name)
	}
	return bytes, nil
}

func keyOf(base string, held int) (string, bool) {
	if letter, ok := letters[base]; ok {
		switch {
		case held != 0:
			return fmt.Sprintf("\x1b[1;%d%s", held+1, letter), true
		case strings.HasPrefix(base, "f"):
			return "\x1bO" + letter, true
		}
		return "\x1b[" + letter, true
	}
	if number, ok := numbers[base]; ok {
		if held != 0 {
			return fmt.Sprintf("\x1b[%s;%d~", number, held+1), true
		}
		return "\x1b[" + number + "~", true
	}
	return byteOf(base, held)
}

// byteOf is a key that is one byte, with an escape before it where alt is held.
func byteOf(base string, held int) (string, bool) {
	if held&alt != 0 {
		rest, ok := byteOf(base, held&^alt)
		return "\x1b" + rest, ok
	}
	letter := len(base) == 1 && 'a' <= base[0] && base[0] <= 'z'
	switch {
	case held == ctrl && letter:
		return string(rune(base[0] & 0x1f)), true
	case held == ctrl:
		control, ok := controls[base]
		return control, ok
	case held == shift && base == "tab":
		return "\x1b[Z", true
	case held == shift && letter:
		return strings.ToUpper(base), true
	case held != 0:
		return "", false
	case letter:
		return base, true
	}
	key, ok := plain[base]
	return key, ok
}
