package pattern

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// mostInstructions bounds the program of a regular expression; (abc){1000} has 3000.
	mostInstructions = 5000
	// budget is how many instructions one look at one text may run, times its bytes.
	// The slowest of what package regexp does takes some 20 ns for each, and cannot be
	// stopped meanwhile.
	budget = 1 << 27
	// leastInput is how long a text may always be.
	leastInput = 32 << 10
	// leastCounted is how much of a line matches are always counted in.
	leastCounted = 1 << 10
)

// Line is a pattern that is looked for in lines. It is safe for many goroutines.
//
// ^ and $ (and \A, \z) are the beginning and end of a line, and a CR before its end is
// not part of it. With multiline what is found may reach over line ends, for which \n
// in the pattern stands as CR LF too.
type Line struct {
	expression *regexp.Regexp // nil where the one literal decides
	literals   []*literal     // what is found holds one of them; none is not known
	multiline  bool
	size       int // instructions
}

// LineOptions say how a pattern is meant.
type LineOptions struct {
	Literal   bool // the text itself and no expression
	Fold      bool // case does not count
	Multiline bool
}

// CompileLine makes a Line of an expression in RE2 syntax as package regexp has it.
// What is malformed, too large, or needs a line end without Multiline is an *Error.
func CompileLine(text string, o LineOptions) (*Line, error) {
	if text == "" {
		return nil, errorf("the pattern is empty")
	}
	tree, err := parse(text, o)
	if err != nil {
		return nil, err
	}
	if !o.Multiline && holdsLineEnd(tree) {
		return nil, errorf(`the pattern holds a line end ("\n"), but lines are looked at one by one; set multiline to true`)
	}
	l := &Line{multiline: o.Multiline, size: size(tree)}
	if l.size > mostInstructions {
		return nil, errorf("the pattern is too large: repeated as often as it says, it has more than %d parts", mostInstructions)
	}
	if o.Literal && !o.Fold && !strings.Contains(text, "\n") {
		l.literals = []*literal{newLiteral(text, false)}
		return l, nil
	}
	if o.Multiline {
		tree = overLineEnds(tree)
	}
	l.literals = required(tree)
	return l, l.compile(tree)
}

// compile makes the expression, and counts what it consists of.
func (l *Line) compile(tree *syntax.Regexp) error {
	var err error
	if l.expression, err = regexp.Compile(tree.String()); err != nil {
		return errorf("the pattern is too large: %v", err)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return errorf("the pattern is too large: %v", err)
	}
	l.size = len(program.Inst)
	return nil
}

func parse(text string, o LineOptions) (*syntax.Regexp, error) {
	if o.Literal {
		if !utf8.ValidString(text) {
			return nil, errorf("the text to look for is not UTF-8")
		}
		text = regexp.QuoteMeta(text)
	}
	flags := syntax.Perl &^ syntax.OneLine
	if o.Fold {
		flags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(text, flags)
	if err != nil {
		return nil, errorf("the pattern is no regular expression in RE2 syntax: %s; to find a text as it is, give it as literal", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return tree, nil
}

// holdsLineEnd says whether a line end stands in an expression as itself.
func holdsLineEnd(tree *syntax.Regexp) bool {
	if tree.Op == syntax.OpLiteral {
		for _, r := range tree.Rune {
			if r == '\n' {
				return true
			}
		}
	}
	for _, sub := range tree.Sub {
		if holdsLineEnd(sub) {
			return true
		}
	}
	return false
}

// size says about how many instructions an expression has, at most a little above the
// bound.
func size(tree *syntax.Regexp) int {
	n := max(1, len(tree.Rune))
	if tree.Op == syntax.OpCharClass {
		n = 1
	}
	for _, sub := range tree.Sub {
		n += size(sub)
	}
	if tree.Op == syntax.OpRepeat {
		n *= max(1, tree.Min, tree.Max)
	}
	return min(n, mostInstructions+1)
}

// overLineEnds makes an expression take CR LF where it says \n, and a CR before $.
func overLineEnds(tree *syntax.Regexp) *syntax.Regexp {
	cr := &syntax.Regexp{Op: syntax.OpQuest, Sub: []*syntax.Regexp{{Op: syntax.OpLiteral, Rune: []rune{'\r'}}}}
	for i, sub := range tree.Sub {
		tree.Sub[i] = overLineEnds(sub)
	}
	switch tree.Op {
	case syntax.OpEndLine:
		return &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{cr, tree}}
	case syntax.OpLiteral:
		parts := &syntax.Regexp{Op: syntax.OpConcat}
		for _, r := range tree.Rune {
			if r == '\n' {
				parts.Sub = append(parts.Sub, cr)
			}
			parts.Sub = append(parts.Sub, &syntax.Regexp{Op: syntax.OpLiteral, Flags: tree.Flags, Rune: []rune{r}})
		}
		return parts
	}
	return tree
}

// MostInput is how many bytes one look may be at: above that it would take seconds.
func (l *Line) MostInput() int { return max(leastInput, budget/l.size) }

// Count says how often the pattern is in a line, up to a bound. Of a line for which
// that could take seconds it counts the beginning.
func (l *Line) Count(line []byte, most int) int {
	if l.expression == nil {
		return min(most, bytes.Count(line, l.literals[0].text))
	}
	enough := max(leastCounted, budget/(l.size*most))
	return len(l.expression.FindAllIndex(line[:min(len(line), enough)], most))
}

// HasCapital says whether a pattern has a capital letter that stands for itself, which
// is what decides whether case counts where that is left to the pattern.
func HasCapital(text string, isLiteral bool) bool {
	for text != "" {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case isLiteral:
		case r == '\\':
			n = escape(text)
		case strings.HasPrefix(text, "(?"):
			if end := strings.IndexAny(text, ":>)"); end > 0 {
				n = end + 1
			}
		}
		if (isLiteral || n == utf8.RuneLen(r)) && unicode.IsUpper(r) {
			return true
		}
		text = text[n:]
	}
	return false
}

// escape gives the length of what a backslash begins.
func escape(text string) int {
	if len(text) < 2 {
		return len(text)
	}
	_, n := utf8.DecodeRuneInString(text[1:])
	n++
	switch c := text[1]; {
	case c != 'p' && c != 'P' && c != 'x' || len(text) < 3:
		return n
	case text[2] == '{':
		if end := strings.IndexByte(text, '}'); end > 0 {
			return end + 1
		}
		return n
	case c == 'x':
		return min(4, len(text))
	}
	return 3
}
