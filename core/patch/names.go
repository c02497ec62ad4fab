package patch

import (
	"regexp"
	"strings"
	"time"
)

const nowhere = "/dev/null"

// spacedTime is a time after a name that only spaces part from it.
var spacedTime = regexp.MustCompile(`\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d.*$`)

// headerName reads what follows --- or +++: a name, quoted or not, and a time.
func headerName(text string) (name, stamp string, ok bool) {
	if strings.HasPrefix(text, `"`) {
		name, rest, ok := unquote(text)
		return name, strings.TrimSpace(rest), ok
	}
	if name, stamp, cut := strings.Cut(text, "\t"); cut {
		return name, strings.TrimSpace(stamp), name != ""
	}
	if i := spacedTime.FindStringIndex(text); i != nil && i[0] > 0 {
		return text[:i[0]], strings.TrimSpace(text[i[0]:]), true
	}
	return text, "", text != ""
}

// isEpoch says whether a time is how diff -N writes that there is no file.
func isEpoch(stamp string) bool {
	for _, form := range []string{"2006-01-02 15:04:05.9 -0700", "2006-01-02 15:04:05 -0700"} {
		if t, err := time.Parse(form, stamp); err == nil {
			return t.Unix() == 0
		}
	}
	return false
}

var escapes = map[byte]byte{'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '\\': '\\', '"': '"'}

// unquote reads a name in quotes as git and diff write it, with escapes as in C.
func unquote(text string) (name, rest string, ok bool) {
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			return out.String(), text[i+1:], out.Len() > 0
		case '\\':
			i++
			if i < len(text) && escapes[text[i]] != 0 {
				out.WriteByte(escapes[text[i]])
				continue
			}
			if i+3 > len(text) {
				return "", "", false
			}
			octal, ok := fromOctal(text[i : i+3])
			if !ok {
				return "", "", false
			}
			out.WriteByte(octal)
			i += 2
		default:
			out.WriteByte(c)
		}
	}
	return "", "", false
}

func fromOctal(digits string) (byte, bool) {
	n := 0
	for _, d := range []byte(digits) {
		if d < '0' || d > '7' {
			return 0, false
		}
		n = n*8 + int(d-'0')
	}
	return byte(n & 0xFF), n > 0 && n <= 0xFF
}

// pair reads the two names after "diff --git", where it can be told where the
// one ends: both are quoted, or they are equal but for the part that git puts
// before each.
func pair(text string) (before, after string, ok bool) {
	if strings.HasPrefix(text, `"`) {
		before, rest, ok := unquote(text)
		if !ok || !strings.HasPrefix(rest, " ") {
			return "", "", false
		}
		after = strings.TrimLeft(rest, " ")
		if strings.HasPrefix(after, `"`) {
			after, _, ok = unquote(after)
		}
		return before, after, ok && after != ""
	}
	if i := strings.Index(text, ` "`); i > 0 && strings.HasSuffix(text, `"`) {
		after, _, ok = unquote(text[i+1:])
		return text[:i], after, ok
	}
	middle := len(text) / 2
	if len(text)%2 == 0 || text[middle] != ' ' {
		return "", "", false
	}
	before, after = text[:middle], text[middle+1:]
	return before, after, before == after || afterFirst(before) == afterFirst(after)
}

func afterFirst(name string) string {
	_, rest, _ := strings.Cut(name, "/")
	return rest
}

// stripped takes leading parts off a name.
func stripped(name string, parts int) (string, bool) {
	if name == "" || name == nowhere {
		return name, true
	}
	for range parts {
		_, rest, cut := strings.Cut(name, "/")
		if !cut || rest == "" {
			return "", false
		}
		name = rest
	}
	return name, true
}

// prefixes are what git puts before the two names of a file: by default, with
// diff.mnemonicPrefix (commit, index, object, work tree), and the same of a
// reversed diff.
var prefixes = []string{"a/ b/", "i/ w/", "c/ i/", "c/ w/", "o/ w/", "1/ 2/"}

// arePrefixed says whether two names of a file are as git writes them. Where both
// begin alike they are not: git tells them apart. One name alone says enough only
// with the default ones, since directories may be called c or w.
func arePrefixed(before, after string) bool {
	alone := isNone(before) || isNone(after)
	for i, both := range prefixes {
		old, put, _ := strings.Cut(both, " ")
		if (!alone || i == 0) && (begins(before, old) && begins(after, put) || begins(before, put) && begins(after, old)) {
			return true
		}
	}
	return false
}

func isNone(name string) bool { return name == "" || name == nowhere }

func begins(name, prefix string) bool { return isNone(name) || strings.HasPrefix(name, prefix) }
