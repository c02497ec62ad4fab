package edit_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"envapi/core/edit"
	"envapi/internal/random"
)

const limit = 64 << 20

func TestEditsAreExact(t *testing.T) {
	for _, c := range []struct {
		name, content string
		edits         []edit.Edit
		want          string
		n             int
	}{
		{"one", "a b c", []edit.Edit{{Old: "b", New: "B"}}, "a B c", 1},
		{"each in what the ones before left", "a", []edit.Edit{{Old: "a", New: "bb"}, {Old: "bb", New: "c"}}, "c", 2},
		{"all", "a.a.a", []edit.Edit{{Old: "a", New: "aa", All: true}}, "aa.aa.aa", 3},
		{"all, from left to right", "aaaaa", []edit.Edit{{Old: "aa", New: "b", All: true}}, "bba", 2},
		{"taken out", "a\nb\nc\n", []edit.Edit{{Old: "b\n"}}, "a\nc\n", 1},
		{"C3: within a line", "a\r\nb\nc\r\n", []edit.Edit{{Old: "b", New: "B"}}, "a\r\nB\nc\r\n", 1},
		{"C3: LF for CRLF", "a\r\nb\r\nc\r\n", []edit.Edit{{Old: "a\nb\n", New: "x\ny\nz\n"}}, "x\r\ny\r\nz\r\nc\r\n", 1},
		{"C3: lines put in where all are CRLF", "a\r\nb\r\n", []edit.Edit{{Old: "b", New: "b\nc"}}, "a\r\nb\r\nc\r\n", 1},
		{"C3: a line taken out from its end on", "a\r\nb\r\n", []edit.Edit{{Old: "\nb"}}, "a\r\n", 1},
		{"C3: CRLF by the letter", "a\r\nb\r\n", []edit.Edit{{Old: "a\r\nb", New: "a\nb"}}, "a\nb\r\n", 1},
		{"C3: a new text with CRLF by the letter", "a\r\nb\r\n", []edit.Edit{{Old: "a\nb", New: "c\r\nd\ne"}}, "c\r\nd\ne\r\n", 1},
		{"C3: of both kinds only what is there", "a\r\nb\nc\r\n", []edit.Edit{{Old: "b\nc", New: "x\ny"}}, "a\r\nx\ny\r\n", 1},
		{"C4: a BOM", "\xEF\xBB\xBFa\n", []edit.Edit{{Old: "a", New: "b"}}, "\xEF\xBB\xBFb\n", 1},
		{"C5: tabs", "all:\n\tcc a\n", []edit.Edit{{Old: "\tcc a", New: "\tcc b"}}, "all:\n\tcc b\n", 1},
		{"C6: no end", "a\nb", []edit.Edit{{Old: "b", New: "c"}}, "a\nc", 1},
		{"C6: two ends", "a\n\n", []edit.Edit{{Old: "a", New: "b"}}, "b\n\n", 1},
		{"C8: bytes", "\xE7\xE3o a", []edit.Edit{{Old: "a", New: "b"}}, "\xE7\xE3o b", 1},
		{"C9: what is ASCII in UTF-16 is not", "\xFF\xFEa\x00", []edit.Edit{{Old: "a\x00", New: "b\x00"}}, "\xFF\xFEb\x00", 1},
		{"C10: two characters", "a", []edit.Edit{{Old: "a", New: `x\ny`}}, `x\ny`, 1},
		{"C11: an entity", "a", []edit.Edit{{Old: "a", New: "&lt;"}}, "&lt;", 1},
		{"C11: signs of patterns", "a.b", []edit.Edit{{Old: "a.b", New: `$1 & \1 ${x}`}}, `$1 & \1 ${x}`, 1},
		{"signs of patterns in old", "a(b)*[c]", []edit.Edit{{Old: "(b)*[c]", New: ""}}, "a", 1},
		{"none", "a", nil, "a", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := bytes.Clone([]byte(c.content))
			content := []byte(c.content)
			got, err := edit.Apply(content, c.edits, limit)
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Content) != c.want || got.Replacements != c.n {
				t.Errorf("it makes %q of %d replacements, want %q of %d", got.Content, got.Replacements, c.want, c.n)
			}
			if !bytes.Equal(content, before) {
				t.Errorf("the content itself is %q now", content)
			}
		})
	}
}

func TestSeveralPlacesAreNamed(t *testing.T) {
	for _, c := range []struct {
		name, content, old string
		lines              []int
		total              int
	}{
		{"C1", "x\ndebug = True\ny\ndebug = True\n", "debug = True", []int{2, 4}, 2},
		{"places that overlap", "aaa", "aa", []int{1, 1}, 2},
		{"many", strings.Repeat("a\n", 100), "a", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := edit.Apply([]byte("first\n"+c.content), []edit.Edit{{Old: "first\n"}, {Old: c.old, New: "b"}}, limit)
			var several *edit.AmbiguousError
			if !errors.As(err, &several) {
				t.Fatalf("the error is %v", err)
			}
			if several.Edit != 2 || !slices.Equal(several.Lines, c.lines) || several.Total != c.total {
				t.Errorf("it is %+v, want lines %v of %d", several, c.lines, c.total)
			}
			if text := err.Error(); !strings.Contains(text, fmt.Sprintf("%d times", c.total)) {
				t.Errorf("the text is %q", text)
			}
		})
	}
}

func TestWhatIsNotThereIsExplained(t *testing.T) {
	for _, c := range []struct {
		name, content, old string
		line               int    // of the nearest
		hint               string // what the hint says
	}{
		{"a word", "func main() {\n\tfmt.Println(\"hello\")\n}\n", "\tfmt.Println(\"helo\")", 2, ""},
		{"one of several lines", "a\nfunc f() {\n\treturn 1\n}\n", "func f() {\n\treturn 2\n}\n", 3, "line 2 of the text is not as line 3 of the file"},
		{"white space within", "x\nfoo( a, b )\n", "foo(a, b)", 2, "only in white space from what begins in line 2"},
		{"indentation", "def f():\n    if x:\n        y\n", "if x:\n    y", 2, "only in indentation from what begins in line 2"},
		{"the ends of lines", "a  \nb\n", "a\nb\n", 1, "white space at the ends of lines"},
		{"around", "a b\n", "  a b  ", 1, "without the white space at its beginning or end (line 1)"},
		{"CRLF for LF", "x\na\nb\n", "a\r\nb", 2, "LF line ends, the text has CRLF (line 2)"},
		{"LF in a file with both", "x\na\r\nb\r\n", "a\nb", 2, "CRLF line ends, and the file has both"},
		{"case", "Hello World\n", "hello world", 1, "only in case"},
		{"two characters for a line end", "x\na\nb\n", `a\nb`, 2, `as two characters`},
		{"quotes with backslashes", `say "a"`, `say \"a\"`, 1, `as two characters`},
		{"entities in the text", "a < b\n", "a &lt; b", 1, "where the text has entities"},
		{"entities in the file", "a &lt; b\n", "a < b", 1, "where the text has characters"},
		{"NFD for NFC", "caf\u00e9\n", "cafe\u0301", 1, "NFC or NFD"},
		{"UTF-16, little endian", "\xFF\xFEa\x00b\x00", "ab", 0, "UTF-16 (little endian)"},
		{"UTF-16, big endian", "\xFE\xFF\x00a\x00b", "ab", 0, "UTF-16 (big endian)"},
		{"nothing like it", "abc\n", "xyz", 0, ""},
		{"an empty file", "", "a", 0, ""},
		{"an empty text", "a", "", 0, "old is empty"},
		{"only white space", "a", "   \n", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			edits := []edit.Edit{{Old: c.old, New: "x"}}
			if strings.HasPrefix(c.name, "LF in") {
				c.content = "first\n" + c.content
				c.line++
			}
			_, err := edit.Apply([]byte(c.content), edits, limit)
			var none *edit.NoMatchError
			if !errors.As(err, &none) {
				t.Fatalf("the error is %v", err)
			}
			line := 0
			if len(none.Nearest) > 0 {
				line = none.Nearest[0].Number
			}
			if none.Edit != 1 || !strings.Contains(none.Hint, c.hint) || line != c.line {
				t.Errorf("it is %+v, want line %d and %q", none, c.line, c.hint)
			}
			if len(none.Nearest) > 3 {
				t.Errorf("it shows %d lines", len(none.Nearest))
			}
		})
	}
}

func TestTheNearestLinesAreTheLikest(t *testing.T) {
	content := "alpha beta\nalpha beta gamma\nother\nalpha beta gamma delta\nalpha beta gamma delta epsilon\n"
	_, err := edit.Apply([]byte(content), []edit.Edit{{Old: "alpha beta gamma delte"}}, limit)
	var none *edit.NoMatchError
	if !errors.As(err, &none) {
		t.Fatal(err)
	}
	var got []int
	for _, l := range none.Nearest {
		got = append(got, l.Number)
	}
	if want := []int{4, 2, 5}; !slices.Equal(got, want) {
		t.Errorf("the nearest lines are %v, want %v", got, want)
	}
}

func TestALongLineIsShownInPart(t *testing.T) {
	_, err := edit.Apply([]byte("needle "+strings.Repeat("ü", 1<<20)), []edit.Edit{{Old: "needle  " + strings.Repeat("ü", 300)}}, limit)
	var none *edit.NoMatchError
	if !errors.As(err, &none) || len(none.Nearest) == 0 {
		t.Fatal(err)
	}
	if text := none.Nearest[0].Text; len(text) > 210 || strings.ContainsRune(text, '\uFFFD') {
		t.Errorf("it shows %d bytes: %q", len(text), text)
	}
}

func TestAnEditMakesNoMoreThanIsAllowed(t *testing.T) {
	content := bytes.Repeat([]byte("a"), 1<<20)
	_, err := edit.Apply(content, []edit.Edit{{Old: "a", New: strings.Repeat("b", 1<<20), All: true}}, limit)
	var much *edit.LimitError
	if !errors.As(err, &much) || much.Edit != 1 || much.Limit != limit {
		t.Errorf("the error is %v", err)
	}
	if _, err := edit.Apply(content, []edit.Edit{{Old: "a", New: "bb", All: true}}, 2<<20); err != nil {
		t.Errorf("what has just as much as is allowed: %v", err)
	}
	if _, err := edit.Apply(content, []edit.Edit{{Old: "a", New: "bb", All: true}}, 2<<20-1); !errors.As(err, &much) {
		t.Errorf("what has a byte more: %v", err)
	}
}

func TestTheWorkOfACallIsBounded(t *testing.T) {
	content := append([]byte("b"), bytes.Repeat([]byte("x"), 16<<20)...)
	edits := slices.Repeat([]edit.Edit{{Old: "b", New: "b"}}, 33)
	_, err := edit.Apply(content, edits, limit)
	var much *edit.LimitError
	if !errors.As(err, &much) || !strings.Contains(much.Reason, "fewer at a time") {
		t.Errorf("the error is %v", err)
	}
}

// TestEncodingsAreNotMixed: what would shift the characters of a file, or stand among
// them in another encoding, is refused (C8, C9).
func TestEncodingsAreNotMixed(t *testing.T) {
	for _, c := range []struct {
		name, content string
		edit          edit.Edit
		refused       bool
	}{
		{"ASCII in UTF-16", "\xFF\xFEh\x00i\x00", edit.Edit{Old: "h", New: "jj"}, true},
		{"ASCII of the same length", "\xFF\xFEh\x00i\x00", edit.Edit{Old: "h", New: "j"}, true},
		{"between two characters", "\xFE\xFFa\x00a\x00", edit.Edit{Old: "\x00a", New: "\x00b"}, true},
		{"half a character", "\xFF\xFEh\x00i\x00", edit.Edit{Old: "h\x00", New: "j\x00k"}, true},
		{"characters of UTF-16", "\xFF\xFEh\x00i\x00", edit.Edit{Old: "h\x00", New: "j\x00k\x00"}, false},
		{"accents into Latin-1", "caf\xE9 x", edit.Edit{Old: "x", New: "\u00e9"}, true},
		{"ASCII into Latin-1", "caf\xE9 x", edit.Edit{Old: "x", New: "y"}, false},
		{"accents for accents", "\xFF \u00e9", edit.Edit{Old: "\u00e9", New: "\u00e8"}, false},
	} {
		_, err := edit.Apply([]byte(c.content), []edit.Edit{c.edit}, limit)
		var foreign *edit.EncodingError
		if errors.As(err, &foreign) != c.refused || !c.refused && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestHostileContentIsNoMoreWork: neither a text nor content can be chosen so
// that a call takes more than some passes.
func TestHostileContentIsNoMoreWork(t *testing.T) {
	const size = 1 << 20
	as := bytes.Repeat([]byte("a"), size)
	for _, c := range []struct {
		name    string
		content []byte
		edit    edit.Edit
	}{
		{"half of it, with another end", as, edit.Edit{Old: strings.Repeat("a", size/2) + "b"}},
		{"half of it, at every place", as, edit.Edit{Old: strings.Repeat("a", size/2)}},
		{"lines of a byte", bytes.Repeat([]byte("a\n"), size/2), edit.Edit{Old: strings.Repeat("a\n", 1000) + "b"}},
		{"empty lines", bytes.Repeat([]byte("\n"), size), edit.Edit{Old: "a\n\n\n"}},
		{"long lines", bytes.Repeat(append(bytes.Repeat([]byte("ab"), 1000), '\n'), size/2001), edit.Edit{Old: strings.Repeat(strings.Repeat("ab", 999)+"x\n", 100)}},
		{"accents", bytes.Repeat([]byte("\u0301"), size/2), edit.Edit{Old: "a\u0301" + strings.Repeat("\u0300", 1000)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := edit.Apply(c.content, []edit.Edit{c.edit}, limit)
			if err == nil {
				t.Error("it was applied")
			}
		})
	}
}

// TestEditsAreWhatANaiveModelMakes: the model replaces by the standard library.
func TestEditsAreWhatANaiveModelMakes(t *testing.T) {
	random.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n")), 0, 30, -1)
		content := text.Draw(t, "content")
		var edits []edit.Edit
		for range rapid.IntRange(0, 4).Draw(t, "edits") {
			old := text.Draw(t, "old")
			edits = append(edits, edit.Edit{Old: old[:min(len(old), 3)], New: text.Draw(t, "new"), All: rapid.Bool().Draw(t, "all")})
		}
		want, fails := model(content, edits)
		got, err := edit.Apply([]byte(content), edits, limit)
		if fails != (err != nil) {
			t.Fatalf("the error is %v, the model fails: %v", err, fails)
		}
		if err == nil && string(got.Content) != want {
			t.Fatalf("it makes %q, want %q", got.Content, want)
		}
		if err != nil && got.Content != nil {
			t.Fatalf("with an error it gives %q", got.Content)
		}
	})
}

func model(content string, edits []edit.Edit) (string, bool) {
	for _, e := range edits {
		if e.Old == "" || !strings.Contains(content, e.Old) {
			return "", true
		}
		if !e.All && strings.Index(content, e.Old) != strings.LastIndex(content, e.Old) {
			return "", true
		}
		content = strings.ReplaceAll(content, e.Old, e.New)
	}
	return content, false
}
