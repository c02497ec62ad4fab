// Package plain shows text that may hold anything on a terminal, which must not obey it.
package plain

import (
	"strconv"
	"strings"
)

// Text gives a text as it is where a terminal shows it so, and else quoted.
func Text(text string) string {
	if quoted := strconv.Quote(text); strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) != text {
		return quoted
	}
	return text
}
