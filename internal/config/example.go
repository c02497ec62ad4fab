package config

import (
	"fmt"
	"strings"
)

// Example gives the file .env.example: every setting with its description and
// its default, commented out.
func Example() string {
	var b strings.Builder
	b.WriteString("# The settings of envapi. Copy this file to .env, in the folder where envapi-http\n" +
		"# is started, and uncomment what you change; variables of the environment overrule\n" +
		"# the file. An empty value is the default. envapi-mcp reads the environment only.\n")
	for _, f := range fields {
		fmt.Fprintf(&b, "\n# %s Allowed: %s.\n#%s=%s\n", f.Tag.Get("doc"), allowed(f), nameOf(f), f.Tag.Get("default"))
	}
	return b.String()
}

// The lines of docs/operations.md between which the table of settings stands.
const tableBegin, tableEnd = "<!-- settings: generated -->\n", "<!-- end of settings -->\n"

// WithTable gives a page with the table of settings between its marks, in the
// place of what stood there.
func WithTable(page string) string {
	before, rest, _ := strings.Cut(page, tableBegin)
	_, after, _ := strings.Cut(rest, tableEnd)
	return before + tableBegin + table() + tableEnd + after
}

func table() string {
	var b strings.Builder
	b.WriteString("| setting | default | allowed | what |\n|---|---|---|---|\n")
	for _, f := range fields {
		value := f.Tag.Get("default")
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", nameOf(f), value, allowed(f), f.Tag.Get("doc"))
	}
	return b.String()
}
