package host

import (
	"slices"
	"strings"
)

// facts are what the probe's script said, by name, in its order.
type facts map[string][]string

// parseFacts reads what the script said.
func parseFacts(said string) facts {
	f := facts{}
	for line := range strings.Lines(said) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		f[name] = append(f[name], strings.TrimSpace(value))
	}
	return f
}

// last gives the last that was said of a name; "" where nothing was.
func (f facts) last(name string) string {
	said := f[name]
	if len(said) == 0 {
		return ""
	}
	return said[len(said)-1]
}

// has says whether anything was said of a name.
func (f facts) has(name string) bool { return len(f[name]) > 0 }

// namespace gives a namespace's own name, such as "pid:[4026531836]".
func (f facts) namespace(kind string) string {
	i := slices.IndexFunc(f["namespace"], func(s string) bool { return strings.HasPrefix(s, kind+":[") })
	if i < 0 {
		return ""
	}
	return f["namespace"][i]
}
