package pattern

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// mostLiterals is how many texts are looked for side by side.
	mostLiterals = 8
	// common are the bytes that texts mostly consist of, the commonest first.
	common = " etaoinsrlcdupmfgh\n\t.,()b_v"
)

// literal is a text that is looked for by one of its bytes, the rarest.
type literal struct {
	text []byte // in lower case with fold
	fold bool   // of ASCII
	at   int    // which byte
}

func newLiteral(text string, fold bool) *literal {
	l := &literal{text: []byte(text), fold: fold}
	for i := range l.text {
		if rarity(l.text[i]) > rarity(l.text[l.at]) {
			l.at = i
		}
	}
	return l
}

func rarity(b byte) int {
	if i := strings.IndexByte(common, b); i >= 0 {
		return i
	}
	return len(common)
}

// index gives where the text is, at or behind from; -1 is nowhere.
func (l *literal) index(text []byte, from int) int {
	if l.fold {
		return l.indexFold(text, from)
	}
	wrong := 0
	for i := from; i+len(l.text) <= len(text); {
		n := bytes.IndexByte(text[i+l.at:len(text)-len(l.text)+l.at+1], l.text[l.at])
		if n < 0 {
			return -1
		}
		if i += n; bytes.Equal(text[i:i+len(l.text)], l.text) {
			return i
		}
		i++
		// Where the byte is not rare at all, package bytes knows better.
		if wrong++; wrong > 8+(i-from)/64 {
			if n = bytes.Index(text[i:], l.text); n < 0 {
				return -1
			}
			return i + n
		}
	}
	return -1
}

// indexFold is index where the case of ASCII does not count.
func (l *literal) indexFold(text []byte, from int) int {
	last := len(text) - len(l.text) + l.at + 1 // behind the last place of the byte
	lower := l.text[l.at]
	cases := [2]byte{lower, lower}
	if lower >= 'a' && lower <= 'z' {
		cases[1] = lower - 'a' + 'A'
	}
	next := [2]int{-1, -1}
	for i := from + l.at; i < last; i++ {
		for k, c := range cases {
			if next[k] < i {
				if next[k] = last; i < last {
					if n := bytes.IndexByte(text[i:last], c); n >= 0 {
						next[k] = i + n
					}
				}
			}
		}
		if i = min(next[0], next[1]); i >= last {
			return -1
		}
		if begin := i - l.at; equalFold(text[begin:begin+len(l.text)], l.text) {
			return begin
		}
	}
	return -1
}

// equalFold compares with a text in lower case.
func equalFold(text, lower []byte) bool {
	for i, b := range text {
		if b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		if b != lower[i] {
			return false
		}
	}
	return true
}

// texts are what an expression may stand for: each text that it finds is one of them
// where they are exact, and else holds one. None is that nothing is known.
type texts struct {
	all   []string
	exact bool
	fold  bool
}

// required gives texts one of which is in everything that an expression finds.
func required(tree *syntax.Regexp) []*literal {
	t := textsOf(tree)
	if t.worth() == 0 {
		return nil
	}
	var all []*literal
	for _, text := range t.all {
		all = append(all, newLiteral(text, t.fold))
	}
	return all
}

// worth says how well the texts tell lines apart; 0 is not at all.
func (t texts) worth() int {
	if len(t.all) == 0 {
		return 0
	}
	least := 1 << 30
	for _, text := range t.all {
		n := 0
		for i := range len(text) {
			n += 8 + rarity(text[i])
		}
		least = min(least, n)
	}
	if least <= 8+len(common)/2 { // one common byte: most lines have it
		return 0
	}
	return max(1, least-4*len(t.all))
}

func textsOf(tree *syntax.Regexp) texts {
	switch tree.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return texts{all: []string{""}, exact: true}
	case syntax.OpLiteral:
		return literalTexts(tree)
	case syntax.OpCharClass:
		return classTexts(tree)
	case syntax.OpCapture:
		return textsOf(tree.Sub[0])
	case syntax.OpPlus:
		return inexact(textsOf(tree.Sub[0]))
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return inexact(textsOf(tree.Sub[0]))
		}
	case syntax.OpConcat:
		return concatTexts(tree.Sub)
	case syntax.OpAlternate:
		return alternateTexts(tree.Sub)
	}
	return texts{}
}

func inexact(t texts) texts {
	t.exact = false
	return t
}

// literalTexts gives the text of a literal. Where case does not count it is the
// longest part of letters that have no other case outside of ASCII.
func literalTexts(tree *syntax.Regexp) texts {
	if slices.Contains(tree.Rune, utf8.RuneError) { // finds what is not UTF-8
		return texts{}
	}
	if tree.Flags&syntax.FoldCase == 0 {
		return texts{all: []string{string(tree.Rune)}, exact: true}
	}
	best, now := "", ""
	for _, r := range tree.Rune {
		if now += string(unicode.ToLower(r)); r > unicode.MaxASCII || strings.ContainsRune("ksKS", r) {
			now = ""
		}
		if len(now) > len(best) {
			best = now
		}
	}
	if best == "" {
		return texts{}
	}
	return texts{all: []string{best}, exact: len(best) == len(tree.Rune), fold: true}
}

func classTexts(tree *syntax.Regexp) texts {
	t := texts{exact: true}
	for i := 0; i < len(tree.Rune); i += 2 {
		for r := tree.Rune[i]; r <= tree.Rune[i+1]; r++ {
			if t.all = append(t.all, string(r)); len(t.all) > mostLiterals || r == utf8.RuneError {
				return texts{}
			}
		}
	}
	return t
}

// concatTexts joins what is exact and beside each other, and takes the best of what
// that leaves.
func concatTexts(subs []*syntax.Regexp) texts {
	best, now := texts{}, texts{all: []string{""}, exact: true}
	whole := true
	for _, sub := range subs {
		t := textsOf(sub)
		joined, ok := join(now, t)
		if !ok {
			whole = false
			best = better(best, now)
			best = better(best, t)
			joined = texts{all: []string{""}, exact: true}
			if t.exact {
				joined = t
			}
		}
		now = joined
	}
	if whole {
		return now
	}
	return inexact(better(best, now))
}

func better(a, b texts) texts {
	if b.worth() > a.worth() {
		return b
	}
	return a
}

func join(a, b texts) (texts, bool) {
	if !a.exact || !b.exact || len(a.all)*len(b.all) > mostLiterals {
		return texts{}, false
	}
	t := texts{exact: true, fold: a.fold || b.fold}
	for _, x := range a.all {
		for _, y := range b.all {
			t.all = append(t.all, lowerIf(t.fold, x+y))
		}
	}
	return t, true
}

// lowerIf makes a text one that is compared without case. What is outside of ASCII
// stays as it is: there the case counts also then.
func lowerIf(fold bool, text string) string {
	if !fold {
		return text
	}
	b := []byte(text)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func alternateTexts(subs []*syntax.Regexp) texts {
	t := texts{exact: true}
	for _, sub := range subs {
		one := textsOf(sub)
		if len(one.all) == 0 || len(t.all)+len(one.all) > mostLiterals {
			return texts{}
		}
		t.all = append(t.all, one.all...)
		t.exact = t.exact && one.exact
		t.fold = t.fold || one.fold
	}
	for i := range t.all {
		t.all[i] = lowerIf(t.fold, t.all[i])
	}
	return t
}
