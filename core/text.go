package core

import (
	"encoding/base64"
	"unicode/utf8"
)

// The encodings of bytes in JSON.
const (
	encodingText   = "utf-8"
	encodingBase64 = "base64"
)

// encode gives bytes as a JSON string can carry them, losing none.
func encode(data []byte) (text, encoding string) {
	if utf8.Valid(data) {
		return string(data), encodingText
	}
	return base64.StdEncoding.EncodeToString(data), encodingBase64
}

// wholeChars gives the length of data without a character at its end of which
// only the beginning is there.
func wholeChars(data []byte) int {
	for i := len(data) - 1; i >= 0 && i >= len(data)-utf8.UTFMax+1; i-- {
		if !utf8.RuneStart(data[i]) {
			continue
		}
		if !utf8.FullRune(data[i:]) {
			return i
		}
		break
	}
	return len(data)
}

// splitChar gives the length of what data begins with of a character whose
// beginning is not there.
func splitChar(data []byte) int {
	for i := range min(len(data), utf8.UTFMax) {
		if utf8.RuneStart(data[i]) {
			return i
		}
	}
	return 0
}
