package pattern

import (
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	// mostGlobs is how many globs one question may have.
	mostGlobs = 64
	// mostAlternatives is how many globs one with braces may stand for: each of them
	// is tried by itself.
	mostAlternatives = 256
	// globMeta is what a name in a glob means something other than itself by. The last
	// stands for every byte that is no UTF-8.
	globMeta = "*?[{\\\uFFFD"
)

// manyStars also finds what is escaped, so that no star is taken from that.
var manyStars = regexp.MustCompile(`(?s)\\.|\*{3,}`)

// Globs is a set of globs; a path matches where one of them does. The empty set
// matches every path.
//
// There is one rule: a glob without a slash is matched against the name, at every
// level; one with a slash against the whole path, below the directory that was asked
// about. A slash or ./ at its beginning only says that: /*.md are those of the directory
// itself. * and ? stand for what is within a name, ** between slashes for any number of
// directories, none included, and at the end for all that is below, [a-z] and [!a-z] for
// one character, {a,b} for either, and \ takes away the meaning of what follows. A slash
// at the end is one of directories only. Names with a dot in front are like all others.
type Globs struct{ all []glob }

type glob struct {
	text  string
	whole bool     // is matched against the whole path
	dir   bool     // directories only
	base  []string // the names that a whole path must begin with
}

// CompileGlobs makes a set of globs. What is malformed or too large is an *Error; ""
// is no glob.
func CompileGlobs(globs []string) (Globs, error) {
	var set Globs
	for _, text := range globs {
		if text == "" {
			continue
		}
		g, err := compileGlob(text)
		if err != nil {
			return Globs{}, err
		}
		if set.all = append(set.all, g); len(set.all) > mostGlobs {
			return Globs{}, errorf("there are more than %d globs", mostGlobs)
		}
	}
	return set, nil
}

func compileGlob(text string) (glob, error) {
	if text[0] == '!' {
		return glob{}, errorf(`the glob %q begins with "!", but a glob cannot exclude; for a name that begins with it write \!`, text)
	}
	if !doublestar.ValidatePattern(text) {
		return glob{}, errorf("the glob %q is malformed: a [ or { is not closed, or a \\ stands at its end", text)
	}
	if alternatives(text) > mostAlternatives {
		return glob{}, errorf("the glob %q stands for more than %d alternatives", text, mostAlternatives)
	}
	var g glob
	g.text, g.dir = strings.CutSuffix(text, "/")
	g.text = plainStars(g.text)
	g.whole = strings.Contains(g.text, "/")
	g.text = strings.TrimPrefix(strings.TrimPrefix(g.text, "./"), "/")
	if g.whole {
		names := strings.Split(g.text, "/")
		if slices.ContainsFunc(names, func(name string) bool { return name == "." || name == ".." }) {
			return glob{}, errorf(`the glob %q matches nothing: it is of paths below the directory that was asked about, which hold no "." and ".."`, text)
		}
		for _, name := range names[:len(names)-1] {
			if strings.ContainsAny(name, globMeta) {
				break
			}
			g.base = append(g.base, name)
		}
	}
	return g, nil
}

// plainStars writes stars so that doublestar means by them what Globs says, which at
// the end of a glob it does for some ways to write the same and not for others: three
// and more are one, **/** is **, and a/** is what is below a, without a itself.
func plainStars(text string) string {
	text = manyStars.ReplaceAllStringFunc(text, func(run string) string {
		if run[0] == '\\' {
			return run
		}
		return "*"
	})
	again := func(name, next string) bool { return name == "**" && next == "**" }
	text = strings.Join(slices.CompactFunc(strings.Split(text, "/"), again), "/")
	if strings.HasSuffix(text, "/**") {
		text += "/*"
	}
	return text
}

// alternatives says how many globs without braces one stands for: the sum within
// braces, the product beside each other. It stops counting above the bound.
func alternatives(text string) int {
	total, rest := product(text)
	if rest != "" { // a brace that closes nothing stands for itself
		return total * alternatives(rest[1:])
	}
	return total
}

// product counts up to a comma or brace that belongs to somebody further out.
func product(text string) (n int, rest string) {
	n = 1
	for text != "" {
		c := text[0]
		switch {
		case c == '\\' && len(text) > 1:
			text = text[2:]
			continue
		case c == '{':
			var inner int
			inner, text = sum(text[1:])
			n = min(n*inner, mostAlternatives+1)
			continue
		case c == ',' || c == '}':
			return n, text
		}
		text = text[1:]
	}
	return n, ""
}

func sum(text string) (n int, rest string) {
	for {
		var one int
		one, text = product(text)
		n += one
		if text == "" || text[0] == '}' {
			return n, strings.TrimPrefix(text, "}")
		}
		text = text[1:]
	}
}

// Every says that every path matches.
func (g Globs) Every() bool { return len(g.all) == 0 }

// Match says whether a path, relative to the directory that was asked about, matches.
func (g Globs) Match(path string, dir bool) bool {
	if len(g.all) == 0 {
		return true
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	for i := range g.all {
		at := name
		if g.all[i].whole {
			at = path
		}
		if (dir || !g.all[i].dir) && doublestar.MatchUnvalidated(g.all[i].text, at) {
			return true
		}
	}
	return false
}

// Below says whether anything below a directory could match.
func (g Globs) Below(path string) bool {
	if len(g.all) == 0 {
		return true
	}
	for i := range g.all {
		if g.all[i].reaches(path) {
			return true
		}
	}
	return false
}

func (g *glob) reaches(path string) bool {
	for _, name := range g.base {
		head, rest, more := strings.Cut(path, "/")
		if head != name {
			return false
		}
		if path = rest; !more {
			return true
		}
	}
	return true
}
