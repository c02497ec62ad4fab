package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"time"
)

// search is one that both sides make over the same tree: the service of the copy in
// an environment, ripgrep of the Go installation itself.
type search struct {
	name string
	body map[string]any // of search_files
	rg   []string       // what makes ripgrep do the same
	max  float64
}

var searches = []search{
	{"a literal", map[string]any{"literal": "ErrUnexpectedEOF"}, []string{"-F", "ErrUnexpectedEOF"}, 2},
	{"a rare literal", map[string]any{"literal": "TestGobMapInterfaceEncode"}, []string{"-F", "TestGobMapInterfaceEncode"}, 2},
	{"a regexp with a literal", map[string]any{"pattern": `func \(\w+ \*?\w+\) UnmarshalJSON\(`}, []string{`func \(\w+ \*?\w+\) UnmarshalJSON\(`}, 2},
	{"a literal without case", map[string]any{"literal": "errunexpectedeof", "case": "insensitive"}, []string{"-F", "-i", "errunexpectedeof"}, 0},
	{"a regexp without a literal", map[string]any{"pattern": `\b[a-f]{4}[0-9]{4}\b`}, []string{`\b[a-f]{4}[0-9]{4}\b`}, 0},
	{"files by name", map[string]any{"glob": "*_windows_test.go"}, []string{"--files", "-g", "*_windows_test.go"}, 0},
}

func (c search) ours() string { return "search_files, " + c.name }
func (c search) peer() string { return "rg, " + c.name }

func searchBounds() []bound {
	var all []bound
	for _, c := range searches {
		all = append(all, bound{c.ours(), c.peer(), c.max})
	}
	return all
}

// takeSearches searches the source of Go.
func (r *report) takeSearches(ctx context.Context, f files, _ string, o fileOptions) error {
	source, err := goSource(ctx, o.source)
	if err != nil {
		return err
	}
	if err := f.bring(ctx, source, "source"); err != nil {
		return err
	}
	_, missing := exec.LookPath("rg")
	for _, c := range searches {
		ours, theirs := -1, -1
		line := []contender{{c.ours(), func(ctx context.Context) (time.Duration, error) {
			return timed(func() (err error) {
				ours, err = f.search(ctx, "source", c.body)
				return err
			})
		}}}
		if missing == nil {
			line = append(line, contender{c.peer(), func(ctx context.Context) (time.Duration, error) {
				return timed(func() (err error) {
					theirs, err = lines(ctx, "rg", append(c.rg, "--no-heading", "-n", source)...)
					return err
				})
			}})
		} else {
			r.lacks(c.peer(), "rg is not on this host (Debian's package ripgrep)")
		}
		if err := r.line(ctx, 1, o.rounds, line...); err != nil {
			return err
		}
		if missing == nil && ours != theirs {
			return fmt.Errorf("cannot compare the searches for %s: we find %d lines, rg %d", c.name, ours, theirs)
		}
	}
	return nil
}

func (r *report) lacks(name, why string) {
	if r.absent == nil {
		r.absent = map[string]string{}
	}
	r.absent[name] = why
}

// search gives how many lines match.
func (f files) search(ctx context.Context, name string, body map[string]any) (int, error) {
	all := map[string]any{"path": name, "limit": 2000, "limit_bytes": 1 << 20}
	for field, value := range body {
		all[field] = value
	}
	data, err := json.Marshal(all)
	if err != nil {
		return 0, err
	}
	var found struct {
		Total     int `json:"total_matches"`
		Truncated string
	}
	if err := f.s.call(ctx, http.MethodPost, "/v1/environments/"+f.id+"/files/search", json.RawMessage(data), &found); err != nil {
		return 0, err
	}
	if found.Truncated == "time" {
		return 0, errors.New("the search was cut off by its time")
	}
	return found.Total, nil
}

// lines runs a program and counts the lines that it prints.
func lines(ctx context.Context, program string, args ...string) (int, error) {
	out, err := exec.CommandContext(ctx, program, args...).Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() == 1 && len(ended.Stderr) == 0 {
		err = nil // rg found nothing
	}
	return bytes.Count(out, []byte("\n")), err
}
