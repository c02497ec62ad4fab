package core

import "slices"

// Strip leaves the escape sequences out of what comes in pieces of size bytes.
func Strip(raw []byte, size int) []byte {
	var a ansiStripper
	var text []byte
	for piece := range slices.Chunk(raw, size) {
		text = append(text, a.strip(piece)...)
	}
	return text
}
