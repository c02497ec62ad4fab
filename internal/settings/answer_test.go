package settings

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAnswersThatCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct{ text, why string }{
		"nothing":               {"", "no JSON object"},
		"no JSON":               {"<html>", "no JSON object"},
		"null":                  {"null", "no JSON object"},
		"a list":                {"[]", "no JSON object"},
		"a number":              {"5", "no JSON object"},
		"more behind":           {"{}{}", "no JSON object"},
		"cut off":               {`{"shell_idle_ms": 5`, "no JSON object"},
		"text":                  {`{"shell_idle_ms": "60000"}`, "its shell_idle_ms is"},
		"a fraction":            {`{"shell_idle_ms": 0.5}`, "its shell_idle_ms is 0.5"},
		"an exponent":           {`{"shell_idle_ms": 6e4}`, "its shell_idle_ms is 6e4"},
		"zero":                  {`{"shell_idle_ms": 0}`, "its shell_idle_ms is 0"},
		"below zero":            {`{"environment_idle_ms": -1}`, "its environment_idle_ms is -1"},
		"more than makes sense": {`{"environment_idle_ms": 3162240000001}`, "to 3162240000000"},
		"more than fits":        {`{"environment_idle_ms": 99999999999999999999}`, "its environment_idle_ms is"},
		"true":                  {`{"environment_idle_ms": true}`, "its environment_idle_ms is true"},
		"an object":             {`{"environment_idle_ms": {}}`, "its environment_idle_ms is {}"},
		"profiles, a list":      {`{"profiles": []}`, "its profiles are no JSON object"},
		"a profile, a number":   {`{"profiles": {"work": 5}}`, `of profile "work" is no JSON object`},
		"a profile's time":      {`{"shell_idle_ms": 5, "profiles": {"work": {"shell_idle_ms": -5}}}`, `its shell_idle_ms of profile "work" is -5`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.answers(says(both, `"one"`))
			w.want(owner("known"), times{60000, 3600000, false})
			w.answers(says(c.text, `"two"`))
			w.pass(fresh)
			w.want(owner("known"), times{60000, 3600000, false}) // the last known
			w.want(owner("new"), never)
			w.wantLogged("WARN", strings.ReplaceAll(c.why, `"`, `\"`), 2)
		})
	}
}

func TestAnAnswerIsBounded(t *testing.T) {
	w := newWorld(t)
	fill := func(size int) string {
		const frame = `{"shell_idle_ms": 5, "rest": ""}`
		return strings.Replace(frame, `""`, `"`+strings.Repeat("x", size-len(frame))+`"`, 1)
	}
	w.answers(says(fill(maxAnswerBytes), ""))
	w.want(owner("alice"), times{5, -1, false})
	w.answers(says(fill(maxAnswerBytes+1), ""))
	w.want(owner("bob"), never)
	w.wantLogged("WARN", "longer than 65536 bytes", 1)
	w.answers(func(out http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil { // without an end
			if _, err := out.Write(make([]byte, 4096)); err != nil {
				return
			}
		}
	})
	w.want(owner("carol"), never)
	w.wantLogged("WARN", "longer than 65536 bytes", 2)
	w.answers(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("X-Long", strings.Repeat("x", 10*maxHeaderBytes))
		says(both, "")(out, r)
	})
	w.want(owner("dave"), never)
	w.wantLogged("WARN", "does not answer", 1)
}

func TestALongETagIsNotKept(t *testing.T) {
	w := newWorld(t)
	w.answers(says(both, `"`+strings.Repeat("x", maxTagBytes)+`"`))
	w.want(owner("alice"), times{60000, 3600000, false})
	w.pass(fresh)
	w.want(owner("alice"), times{60000, 3600000, false})
	if tag := w.asked[1].Header.Get("If-None-Match"); tag != "" {
		t.Errorf("asked with %s", tag)
	}
}

func TestA304ToNoETagIsNoAnswer(t *testing.T) {
	w := newWorld(t)
	w.answers(fails(http.StatusNotModified))
	w.want(owner("alice"), never)
}

// FuzzAnswer: whatever is said, it is refused or gives times above zero that are
// the same when they are kept and recalled.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		both, `{}`, `null`, `{"profiles": {"a": {"shell_idle_ms": 1}, "b": null}}`, `{"shell_idle_ms": 1e3}`,
		`{"shell_idle_ms": 3162240000001}`, `{"SHELL_IDLE_MS": 5}`, `{"shell_idle_ms": 5, "shell_idle_ms": -5}`, `{"profiles": {"\ud800": {"shell_idle_ms": 7}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w, err := readAnswer(text)
		if err != nil {
			return
		}
		all := append([]string{"", "default"}, keys(w.Profiles)...)
		said := person{wishes: &w, tag: `"tag"`}
		kept, err := said.text()
		must(t, err)
		var again person
		again.recall(kept)
		if again.wishes == nil || again.tag != said.tag {
			t.Fatalf("%s cannot be recalled", kept)
		}
		for _, profile := range all {
			a, b := w.of(profile), again.wishes.of(profile)
			if timesOf(a) != timesOf(b) || a.Never {
				t.Fatalf("%q: %v became %v", profile, timesOf(a), timesOf(b))
			}
			for _, d := range []*time.Duration{a.Shell, a.Environment} {
				if d != nil && *d <= 0 {
					t.Fatalf("%s gave %v", text, *d)
				}
			}
		}
		if !json.Valid(text) {
			t.Fatalf("%q is no JSON", text)
		}
	})
}

func keys(m map[string]idle) []string {
	var all []string
	for name := range m {
		all = append(all, name)
	}
	return all
}
