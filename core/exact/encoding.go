package exact

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Wide names the encoding of content whose byte order mark says that its characters
// have two bytes or four, "" where there is none. What stands in the bytes of such
// content stands there by chance, and what is put in shifts all that comes behind it.
func Wide(content []byte) string {
	for _, c := range []struct{ mark, name string }{
		{"\xFF\xFE\x00\x00", "UTF-32 (little endian)"},
		{"\x00\x00\xFE\xFF", "UTF-32 (big endian)"},
		{"\xFF\xFE", "UTF-16 (little endian)"},
		{"\xFE\xFF", "UTF-16 (big endian)"},
	} {
		if bytes.HasPrefix(content, []byte(c.mark)) {
			return c.name
		}
	}
	return ""
}

// Mixes says whether a text in UTF-8 beyond ASCII would be put into content of
// another encoding, where the text that it replaces does not show that the content
// has such characters there.
func Mixes(content []byte, old, put string) bool {
	return beyondASCII(put) && utf8.ValidString(put) && !beyondASCII(old) && !utf8.Valid(content)
}

func beyondASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0
}
