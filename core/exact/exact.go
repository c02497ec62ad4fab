// Package exact finds where a text stands in content, in linear time whatever
// the two are: what the standard library does for long texts is only expected to
// be linear, and these texts are chosen by callers.
package exact

import (
	"bytes"
	"math"
)

// Each visits the places where a text stands, from left to right, until visit
// says false: without overlap, as replacing goes, or with. It needs four bytes of
// memory for each of the text's.
func Each(content, text []byte, overlap bool, visit func(at int) bool) {
	if len(text) == 0 || len(text) > len(content) || len(text) > math.MaxInt32 {
		return
	}
	borders := bordersOf(text)
	matched := 0 // bytes of the text that end here, by Knuth, Morris and Pratt
	for i := 0; i < len(content); i++ {
		if matched == 0 {
			skip := bytes.IndexByte(content[i:], text[0])
			if skip < 0 {
				return
			}
			i += skip
		}
		for matched > 0 && content[i] != text[matched] {
			matched = int(borders[matched-1])
		}
		if content[i] == text[matched] {
			matched++
		}
		if matched < len(text) {
			continue
		}
		if !visit(i + 1 - len(text)) {
			return
		}
		matched = 0
		if overlap {
			matched = int(borders[len(text)-1])
		}
	}
}

// bordersOf gives for each prefix the length of its longest proper prefix that
// is a suffix of it too.
func bordersOf(text []byte) []int32 {
	borders := make([]int32, len(text))
	n := 0
	for i := 1; i < len(text); i++ {
		for n > 0 && text[i] != text[n] {
			n = int(borders[n-1])
		}
		if text[i] == text[n] {
			n++
		}
		borders[i] = int32(n) // #nosec G115 -- the text is no longer than MaxInt32
	}
	return borders
}
