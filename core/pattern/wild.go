package pattern

import "strings"

// wild is a compiled pattern of a .gitignore file: the tokens that git's wildmatch.c
// takes one for, without what its beginning says literally.
type wild []token

type token struct {
	kind  tokenKind
	char  byte
	class *class
}

type tokenKind uint8

const (
	aChar   tokenKind = iota
	anyChar           // ?: all but a slash
	ofClass           // [ ]: never a slash
	anyName           // *: any number that are no slash
	anyPath           // **: any number
	orSkip            // **/: may leave out the next two tokens
)

// class is a set of bytes.
type class [256 / 32]uint32

func (c *class) add(b byte)      { c[b/32] |= 1 << (b % 32) }
func (c *class) has(b byte) bool { return c[b/32]&(1<<(b%32)) != 0 }

func (c *class) addRange(from, to byte) {
	for b := from; b <= to; b++ {
		if c.add(b); b == to { // 255 has no next
			return
		}
	}
}

// compileWild gives the tokens of a pattern; ok is false where it is malformed, which
// for git is a pattern that matches nothing.
func compileWild(text string) (w wild, ok bool) {
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '*':
			n := len(text[i:]) - len(strings.TrimLeft(text[i:], "*"))
			w = append(w, stars(text, i, n)...)
			i += n
			continue
		case '?':
			w = append(w, token{kind: anyChar})
		case '[':
			set, n := compileClass(text[i+1:])
			if n < 0 {
				return nil, false
			}
			w = append(w, token{kind: ofClass, class: set})
			i += n
		case '\\':
			if i++; i == len(text) {
				return nil, false
			}
			w = append(w, token{kind: aChar, char: text[i]})
		default:
			w = append(w, token{kind: aChar, char: c})
		}
		i++
	}
	return w, true
}

// stars gives the tokens of n stars at i. Two or more mean something of their own
// only where they are all there is between slashes.
func stars(text string, i, n int) []token {
	after := text[i+n:]
	alone := (i == 0 || text[i-1] == '/') &&
		(after == "" || after[0] == '/' || strings.HasPrefix(after, `\/`))
	switch {
	case n == 1 || !alone:
		return []token{{kind: anyName}}
	case after != "" && after[0] == '/':
		return []token{{kind: orSkip}, {kind: anyPath}}
	}
	return []token{{kind: anyPath}}
}

// compileClass gives the set of bytes of a class, behind its bracket, and how long it
// is with the bracket that closes it; -1 where it is malformed.
func compileClass(text string) (*class, int) {
	var set class
	i, negated := 0, false
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		negated = true
		i++
	}
	before := byte(0) // what a range may begin with
	for first := true; ; first = false {
		if i >= len(text) {
			return nil, -1
		}
		if text[i] == ']' && !first {
			break
		}
		n, next := set.member(text[i:], before)
		if n < 0 {
			return nil, -1
		}
		i, before = i+n, next
	}
	if negated {
		for j := range set {
			set[j] = ^set[j]
		}
	}
	set['/'/32] &^= 1 << ('/' % 32)
	return &set, i + 1
}

// member adds what stands at the beginning of text to the set, and gives its length
// and what a range behind it would begin with.
func (c *class) member(text string, before byte) (n int, next byte) {
	switch {
	case text[0] == '\\':
		if len(text) < 2 {
			return -1, 0
		}
		c.add(text[1])
		return 2, text[1]
	case text[0] == '-' && before != 0 && len(text) > 1 && text[1] != ']':
		n = 2
		if text[1] == '\\' {
			if n = 3; len(text) < 3 {
				return -1, 0
			}
		}
		c.addRange(before, text[n-1])
		return n, 0
	case strings.HasPrefix(text, "[:"):
		return c.named(text)
	}
	c.add(text[0])
	return 1, text[0]
}

// named adds a class like [:alpha:].
func (c *class) named(text string) (n int, next byte) {
	end := strings.IndexByte(text[2:], ']')
	if end < 0 {
		return -1, 0
	}
	if end == 0 || text[1+end] != ':' {
		c.add('[')
		return 1, '['
	}
	ranges, ok := classes[text[2:1+end]]
	if !ok {
		return -1, 0
	}
	for i := 0; i < len(ranges); i += 2 {
		c.addRange(ranges[i], ranges[i+1])
	}
	return end + 3, 0
}

// classes are POSIX's, as pairs of the first and last byte.
var classes = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "blank": "  \t\t", "cntrl": "\x00\x1f\x7f\x7f",
	"digit": "09", "graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~",
	"space": "  \t\r", "upper": "AZ", "xdigit": "09AFaf",
}

// match says whether the tokens are all of a text. It keeps the set of tokens that
// could come next, so that its time is at most the product of both lengths.
func (w wild) match(text string) bool {
	var room [2][128]bool
	now, next := room[0][:], room[1][:]
	if len(w) >= len(now) {
		now, next = make([]bool, len(w)+1), make([]bool, len(w)+1)
	}
	now, next = now[:len(w)+1], next[:len(w)+1]
	now[0] = true
	for i := range len(text) {
		if !w.step(now, next, text[i]) {
			return false
		}
		now, next = next, now
		clear(next)
	}
	w.skip(now)
	return now[len(w)]
}

// skip adds what may come next because a token stands for nothing.
func (w wild) skip(now []bool) {
	for i := range w {
		if !now[i] {
			continue
		}
		switch w[i].kind {
		case anyName, anyPath:
			now[i+1] = true
		case orSkip:
			now[i+1], now[i+3] = true, true
		}
	}
}

func (w wild) step(now, next []bool, c byte) (alive bool) {
	w.skip(now)
	for i := range w {
		if !now[i] {
			continue
		}
		switch w[i].kind {
		case aChar:
			next[i+1] = next[i+1] || c == w[i].char
		case anyChar:
			next[i+1] = next[i+1] || c != '/'
		case ofClass:
			next[i+1] = next[i+1] || w[i].class.has(c)
		case anyName:
			next[i] = next[i] || c != '/'
		case anyPath:
			next[i] = true
		}
		alive = alive || next[i] || next[i+1]
	}
	return alive
}
