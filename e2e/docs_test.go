package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// notRun are blocks of pages that no test can run, by the word behind ```: why.
var notRun = map[string]string{}

// block is what stands between two fences of a page.
type block struct {
	section string // the heading of its section
	kind    string // the word behind ```
	text    string
	line    int    // of the page, where the text begins
	shows   string // of commands: the ```text that follows
}

// blocks reads a page.
func blocks(t *testing.T, path string) (all []block) {
	t.Helper()
	section, inside := "", false
	prose := false // between the last block and this line
	for i, line := range strings.Split(readFile(t, path), "\n") {
		fence := strings.HasPrefix(line, "```")
		switch {
		case fence && inside:
			inside, prose = false, false
			last := len(all) - 1
			if all[last].kind == "text" && last > 0 && all[last-1].kind == "sh" {
				all[last-1].shows = all[last].text
			}
		case fence:
			kind := strings.TrimPrefix(line, "```")
			if kind == "text" && prose {
				kind = "text of its own"
			}
			inside = true
			all = append(all, block{section: section, kind: kind, line: i + 2})
		case inside:
			all[len(all)-1].text += line + "\n"
		case strings.HasPrefix(line, "## "):
			section = strings.TrimPrefix(line, "## ")
		case line != "":
			prose = true
		}
	}
	return all
}

// TestTheCommandsOfTheOperationsPage runs each of them as it is written. The blocks of a
// section run in one bash, one after the other, and every section has a service, a
// working folder and a folder for backups of its own.
func TestTheCommandsOfTheOperationsPage(t *testing.T) {
	t.Parallel()
	sections, order := map[string][]block{}, []string{}
	for _, b := range blocks(t, "../docs/operations.md") {
		switch {
		case b.kind == "sh":
			if sections[b.section] == nil {
				order = append(order, b.section)
			}
			sections[b.section] = append(sections[b.section], b)
		case b.kind == "text":
		case notRun[b.kind] == "":
			t.Errorf("line %d: nobody runs a block of %q: write commands as sh, with what they print behind them as text", b.line, b.kind)
		}
	}
	if len(order) < 5 {
		t.Errorf("the page has commands in the sections %q only", order)
	}
	for _, section := range order {
		t.Run(section, func(t *testing.T) {
			t.Parallel()
			runAsWritten(t, sections[section])
		})
	}
}

// TestTheOperationsPageLeadsToWhatItHas also from its contents.
func TestTheOperationsPageLeadsToWhatItHas(t *testing.T) {
	t.Parallel()
	page := readFile(t, "../docs/operations.md")
	anchors := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		anchors[strings.ReplaceAll(name, " ", "-")] = true
	}
	links := regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(page, -1)
	if len(links) < 10 {
		t.Errorf("it has the links %q only", links)
	}
	for _, link := range links {
		if !anchors[link[1]] {
			t.Errorf("there is no heading for #%s", link[1])
		}
	}
}

// TestEveryDecisionIsListed in the table of template.md, to which the documents lead.
func TestEveryDecisionIsListed(t *testing.T) {
	t.Parallel()
	list := readFile(t, "../docs/adr/template.md")
	for _, name := range namesIn(t, "../docs/adr") {
		if name != "template.md" && !strings.Contains(list, "]("+name+")") {
			t.Errorf("%s is not in the list", name)
		}
	}
}

// runAsWritten runs blocks and compares what they print.
func runAsWritten(t *testing.T, all []block) {
	t.Helper()
	o := newOperator(t)
	script := "set -eu\n"
	for i, b := range all {
		script += fmt.Sprintf("exec >%s/out%d; echo %[2]d >%[1]s/at\n%[3]s", o.home, i, b.text)
	}
	out, err := o.run(t.Context(), script)
	if err != nil {
		at := all[min(len(all)-1, atoi(readFile(t, filepath.Join(o.home, "at"))))]
		t.Fatalf("the commands from line %d on: %v\n%s\n%s", at.line, err, at.text, out)
	}
	for i, b := range all {
		printed, err := os.ReadFile(filepath.Join(o.home, fmt.Sprint("out", i)))
		if err != nil {
			t.Fatal(err)
		}
		if b.shows != "" && !shown(b.shows).MatchString(string(printed)) {
			t.Errorf("the commands from line %d on printed\n%s\nand the page says\n%s", b.line, printed, b.shows)
		}
	}
}

func atoi(s string) (n int) {
	_, _ = fmt.Sscan(s, &n)
	return n
}

// shown is what a page says that is printed: … is anything within a line, and a line
// of nothing else any lines.
func shown(text string) *regexp.Regexp {
	pattern := regexp.QuoteMeta(strings.TrimRight(text, "\n"))
	pattern = regexp.MustCompile(`(?m)^…\n`).ReplaceAllString(pattern, `(?:.*\n)*`)
	return regexp.MustCompile(`^` + strings.ReplaceAll(pattern, "…", `.*`) + `\n*$`)
}
