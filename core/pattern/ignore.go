package pattern

import (
	"bytes"
	"strings"
)

const (
	// MostIgnoreBytes is how long a .gitignore file may be.
	MostIgnoreBytes = 1 << 20
	// mostRules is how many rules of one file hold; those of the largest collections
	// that are published have some hundred.
	mostRules = 10_000
	// mostRuleBytes is how long one rule may be: as a path.
	mostRuleBytes = 4096
	// mostTokens is how many tokens all those rules of a file may have that need more
	// than a comparison: times the length of a path that is what a question costs.
	mostTokens = 32 << 10
)

// Ignore is the rules of one .gitignore file, as git has them.
type Ignore struct {
	rules []rule
	cut   bool
}

// Verdict is what rules say of a path.
type Verdict int8

// The verdicts.
const (
	Unsaid   Verdict = iota // nothing; ask the rules of the directory above
	Excluded                // it is ignored, with all that is below it
	Included                // it is not, whatever the rules above say
)

type rule struct {
	literal  string // what the path or name begins with, or with suffix ends with
	rest     wild   // what comes behind it
	how      ruleKind
	included bool // begins with !
	dir      bool // directories only
	whole    bool // of the path and not the name
}

type ruleKind uint8

const (
	equals ruleKind = iota
	endsWith
	matches
)

// ParseIgnore reads the rules of a file. Nothing is malformed: what means nothing to
// git has no effect. What is beyond the bounds has none either; see Cut.
func ParseIgnore(text []byte) *Ignore {
	set := &Ignore{cut: len(text) > MostIgnoreBytes}
	text = bytes.TrimPrefix(text[:min(len(text), MostIgnoreBytes)], []byte("\xef\xbb\xbf"))
	tokens := 0
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		r, ok := parseRule(string(trimRule(line)))
		if !ok {
			continue
		}
		tokens += len(r.rest)
		if len(set.rules) == mostRules || tokens > mostTokens || len(line) > mostRuleBytes {
			set.cut = true
			break
		}
		set.rules = append(set.rules, r)
	}
	return set
}

// Cut says that not all rules of the file hold, because there are too many.
func (s *Ignore) Cut() bool { return s.cut }

// Empty says that there are no rules.
func (s *Ignore) Empty() bool { return len(s.rules) == 0 }

// trimRule takes off what is not of the rule: a CR, and blanks at its end that no
// backslash stands before.
func trimRule(line []byte) []byte {
	if len(line) > 0 && line[0] == '#' {
		return nil
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	if i := bytes.IndexByte(line, 0); i >= 0 {
		line = line[:i]
	}
	end := 0
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
		} else if line[i] == ' ' {
			continue
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

// parseRule makes a rule as git's dir.c does; ok is false for what matches nothing.
func parseRule(text string) (r rule, ok bool) {
	text, r.included = strings.CutPrefix(text, "!")
	text, r.dir = strings.CutSuffix(text, "/")
	r.whole = strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	if text == "" {
		return r, false
	}
	i := strings.IndexAny(text, `*?[\`)
	switch {
	case i < 0:
		r.literal = text
		return r, true
	case i == 0 && !r.whole && text[0] == '*' && !strings.ContainsAny(text[1:], `*?[\`):
		r.how, r.literal = endsWith, text[1:]
		return r, true
	}
	// git compares what is literal first and begins anew behind it, which decides
	// what two stars mean there.
	r.how, r.literal = matches, text[:i]
	r.rest, ok = compileWild(text[i:])
	return r, ok
}

// Match says what the rules make of a path that is relative to their file's directory:
// the last one that matches counts.
func (s *Ignore) Match(path string, dir bool) Verdict {
	name := path[strings.LastIndexByte(path, '/')+1:]
	for i := len(s.rules) - 1; i >= 0; i-- {
		r := &s.rules[i]
		if r.dir && !dir || !r.match(path, name) {
			continue
		}
		if r.included {
			return Included
		}
		return Excluded
	}
	return Unsaid
}

func (r *rule) match(path, name string) bool {
	if !r.whole {
		path = name
	}
	switch r.how {
	case equals:
		return path == r.literal
	case endsWith:
		return strings.HasSuffix(path, r.literal)
	}
	rest, ok := strings.CutPrefix(path, r.literal)
	return ok && r.rest.match(rest)
}
