package pattern_test

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"envapi/core/pattern"
)

func compile(t *testing.T, text string, o pattern.LineOptions) *pattern.Line {
	t.Helper()
	l, err := pattern.CompileLine(text, o)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return l
}

// lines gives the lines that a pattern finds.
func lines(l *pattern.Line, text string) []string {
	var all []string
	s := l.NewScan()
	s.Reset([]byte(text))
	for from := 0; ; {
		f, ok := s.Next(from)
		if !ok {
			return all
		}
		all = append(all, text[f.Begin:f.End])
		from = pattern.After([]byte(text), f)
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		o             pattern.LineOptions
		want          string
	}{
		{"one$", "one\r\ntwo\r\n", pattern.LineOptions{}, "one"},
		{"one$", "one\r\ntwo", pattern.LineOptions{Multiline: true}, "one"},
		{"^two$", "one\r\ntwo\r\n", pattern.LineOptions{}, "two"},
		{`one\ntwo`, "zero\none\r\ntwo\r\nthree", pattern.LineOptions{Multiline: true}, "one\r\ntwo"},
		{`one\n`, "one\r\ntwo\r\n", pattern.LineOptions{Multiline: true}, "one"},
		{"one\ntwo", "one\ntwo\n", pattern.LineOptions{Multiline: true, Literal: true}, "one\ntwo"},
		{"one", "zero\none one\none", pattern.LineOptions{Multiline: true, Literal: true}, "one one|one"},
		{"-77", "x\n-77\n", pattern.LineOptions{}, "-77"},
		{"a.c", "abc\na.c\n", pattern.LineOptions{Literal: true}, "a.c"},
		{"a.c", "abc\na.c", pattern.LineOptions{}, "abc|a.c"},
		{"Straße", "STRASSE\nstraße\n", pattern.LineOptions{Literal: true, Fold: true}, "straße"},
		{"kiss", "KISS\n\u212aiſs\n", pattern.LineOptions{Fold: true}, "KISS|\u212aiſs"},
		{"x*", "a\n\nb", pattern.LineOptions{}, "a||b"},
		{"$", "a\n\nb\n", pattern.LineOptions{Multiline: true}, "a||b"},
		{"a[^b]c", "a\nc\nabc", pattern.LineOptions{}, ""},
		{"a\r", "a\r\na\rb\n", pattern.LineOptions{Literal: true}, "a\rb"},
		{"(foo|bar)baz", "foobar\nbarbaz\nfoobaz", pattern.LineOptions{}, "barbaz|foobaz"},
	} {
		if got := strings.Join(lines(compile(t, c.pattern, c.o), c.text), "|"); got != c.want {
			t.Errorf("%q in %q: got %q", c.pattern, c.text, got)
		}
	}
}

func TestPatternsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		pattern string
		o       pattern.LineOptions
		says    string
	}{
		{`a\nb`, pattern.LineOptions{}, "multiline"},
		{"a\nb", pattern.LineOptions{Literal: true}, "multiline"},
		{"a[\n]b", pattern.LineOptions{}, "multiline"},
		{"a(", pattern.LineOptions{}, "RE2"},
		{"a)(b", pattern.LineOptions{}, "RE2"},
		{"((a{100}){100}){10}", pattern.LineOptions{}, ""},
		{"a{1000}b{1000}c{1000}d{1000}e{1000}f", pattern.LineOptions{}, "too large"},
		{"\xff", pattern.LineOptions{Literal: true}, "UTF-8"},
		{"\xff", pattern.LineOptions{}, "RE2"},
		{"", pattern.LineOptions{}, "empty"},
	} {
		var wrong *pattern.Error
		if _, err := pattern.CompileLine(c.pattern, c.o); !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, c.says) {
			t.Errorf("%q: got %v", c.pattern, err)
		}
	}
}

func TestCapitals(t *testing.T) {
	for text, want := range map[string]bool{
		"abc": false, "aBc": true, `\W\S`: false, `\pL`: false, `\p{Greek}`: false, `\x4A`: false, "(?P<Name>x)": false,
		"(?P<Name>X)": true, "[A-Z]": true, "É": true, `\\A`: true, `\`: false, "(?i)X": true, `\x{4A}b`: false,
	} {
		if got := pattern.HasCapital(text, false); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
	if !pattern.HasCapital(`\W`, true) {
		t.Error("a text has no escapes")
	}
}

func TestADearPatternIsGivenLess(t *testing.T) {
	cheap, dear := compile(t, "abc", pattern.LineOptions{}), compile(t, "(abc){1000}", pattern.LineOptions{})
	if c, d := cheap.MostInput(), dear.MostInput(); c < 1<<20 || d > 1<<20 || d < 1<<10 {
		t.Errorf("got %d, %d", c, d)
	}
}

func TestCount(t *testing.T) {
	if n := compile(t, "a", pattern.LineOptions{Literal: true}).Count([]byte("banana"), 10); n != 3 {
		t.Errorf("got %d", n)
	}
	if n := compile(t, "[an]", pattern.LineOptions{}).Count([]byte("banana"), 4); n != 4 {
		t.Errorf("got %d", n)
	}
}

// plainLines asks package regexp about every line.
func plainLines(re *regexp.Regexp, text []byte) []string {
	var all []string
	for line := range bytes.Lines(text) {
		if bare, ok := bytes.CutSuffix(line, []byte("\n")); ok {
			line = bytes.TrimSuffix(bare, []byte("\r"))
		}
		if re.Match(line) {
			all = append(all, string(line))
		}
	}
	return all
}

// FuzzPattern: what is looked for first never loses what the expression finds.
func FuzzPattern(f *testing.F) {
	for _, p := range []string{"one$", "(foo|far)mer", "a+bc", `\bk[ai]s{2,3}\b`, "(?i)Kelvin|sign", "x?yz*", "[a-c]x", "(?s).a", `\x{FFFD}`, "(ab|c)(d|ef)g?h", "^", "a{2}b", "(?i:a)B"} {
		f.Add(p, []byte("one\r\nfarmer KISS\n\u212aelvin ſign\nabefh\xff\nyz aab Ab aB"), false)
		f.Add(p, []byte("aabc\r\r\n\n\r\nkass\ncdgh"), true)
	}
	f.Fuzz(func(t *testing.T, text string, in []byte, fold bool) {
		for _, isLiteral := range []bool{false, true} {
			l, err := pattern.CompileLine(text, pattern.LineOptions{Fold: fold, Literal: isLiteral})
			if err != nil {
				continue
			}
			plain := text
			if isLiteral {
				plain = regexp.QuoteMeta(text)
			}
			if plain = "(?m)" + plain; fold {
				plain = "(?i)" + plain
			}
			re, err := regexp.Compile(plain)
			if err != nil {
				t.Fatalf("%q is taken and is none: %v", text, err)
			}
			if isLiteral && !fold && strings.ContainsRune(text, '\uFFFD') {
				continue // a text is its bytes
			}
			want := plainLines(re, in)
			if got := lines(l, string(in)); strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
				t.Errorf("%q (fold %v, literal %v) in %q: got %q, want %q", text, fold, isLiteral, in, got, want)
			}
		}
	})
}

// FuzzMultiline: it ends, in order, within the text, and finds every line that is
// found by itself.
func FuzzMultiline(f *testing.F) {
	f.Add("a\\nb|$", []byte("a\r\nb\n\n"))
	f.Fuzz(func(t *testing.T, text string, in []byte) {
		l, err := pattern.CompileLine(text, pattern.LineOptions{Multiline: true})
		if err != nil {
			return
		}
		s := l.NewScan()
		s.Reset(in)
		for from := 0; ; {
			f, ok := s.Next(from)
			if !ok {
				return
			}
			after := pattern.After(in, f)
			if f.Begin < from || f.End < f.Begin || f.At < f.Begin || after <= from || after > len(in) {
				t.Fatalf("%q in %q from %d: got %+v, then %d", text, in, from, f, after)
			}
			from = after
		}
	})
}

// TestADearPatternEnds: one look is given the less the dearer a pattern is, since
// nothing can stop it. A tenth of that is looked at here; what is not linear in it does
// not end before the time that all tests have.
func TestADearPatternEnds(t *testing.T) {
	for _, text := range []string{"(a?){300}(a*){300}[^b]{900}b", "(x+x+)+y", `(\pL{0,30}){30}[0-9]`, "(a|b|ab)*bc"} {
		l := compile(t, text, pattern.LineOptions{})
		in := bytes.Repeat([]byte("a"), min(1<<20, l.MostInput())/10)
		s := l.NewScan()
		s.Reset(in)
		if f, ok := s.Next(0); ok {
			t.Errorf("%q finds %+v", text, f)
		}
	}
}
