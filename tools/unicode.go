package tools

import (
	"strconv"
	"unicode/utf16"
)

// hasLoneSurrogate says whether JSON text escapes one half of a surrogate pair
// without the other. Such an escape is no character; encoding/json replaces it
// without a word.
func hasLoneSurrogate(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		unit, ok := escapedUnit(raw[i:])
		if !ok {
			i++ // past the escaped byte, which may be a backslash
			continue
		}
		i += 5
		if !utf16.IsSurrogate(unit) {
			continue
		}
		second, ok := escapedUnit(raw[i+1:])
		if !ok || utf16.DecodeRune(unit, second) == '\uFFFD' {
			return true
		}
		i += 6
	}
	return false
}

// escapedUnit reads the UTF-16 unit of a \uXXXX at the start of raw.
func escapedUnit(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), err == nil
}
