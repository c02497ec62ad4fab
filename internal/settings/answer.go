package settings

import (
	"encoding/json"
	"fmt"
	"time"

	"envapi/core"
)

// longest is the longest time that makes sense to ask for, in milliseconds: a
// century. Above it a number is taken for a mistake.
const longest = 100 * 366 * 24 * 3600 * 1000

// idle is what is asked for, in milliseconds; nil where nothing is.
type idle struct {
	Shell       *int64 `json:"shell_idle_ms,omitempty"`
	Environment *int64 `json:"environment_idle_ms,omitempty"`
}

// wishes are what an account asks for: all that is kept of an answer.
type wishes struct {
	idle
	Profiles map[string]idle `json:"profiles,omitempty"`
}

// of gives what holds for a profile: its own before the account's.
func (w *wishes) of(profile string) core.IdleTimes {
	if w == nil {
		return core.IdleTimes{Never: true}
	}
	own := w.Profiles[profile]
	return core.IdleTimes{
		Shell:       duration(own.Shell, w.Shell),
		Environment: duration(own.Environment, w.Environment),
	}
}

// duration gives the first of the times that there is.
func duration(times ...*int64) *time.Duration {
	for _, ms := range times {
		if ms != nil {
			d := time.Duration(*ms) * time.Millisecond
			return &d
		}
	}
	return nil
}

// readAnswer reads what settings-api says of an account. Members that are not
// known are left out; names are exact, as JSON has them. The error names the
// member that cannot be used.
func readAnswer(text []byte) (wishes, error) {
	members, err := object(text)
	if err != nil {
		return wishes{}, fmt.Errorf("it is %w", err)
	}
	account, err := readIdle(members, "")
	if err != nil {
		return wishes{}, err
	}
	w := wishes{idle: account}
	if isNull(members["profiles"]) {
		return w, nil
	}
	profiles, err := object(members["profiles"])
	if err != nil {
		return wishes{}, fmt.Errorf("its profiles are %w", err)
	}
	for name, raw := range profiles {
		own, err := readProfile(name, raw)
		if err != nil {
			return wishes{}, err
		}
		if own == (idle{}) {
			continue
		}
		if w.Profiles == nil {
			w.Profiles = map[string]idle{}
		}
		w.Profiles[name] = own
	}
	return w, nil
}

func readProfile(name string, raw json.RawMessage) (idle, error) {
	if isNull(raw) {
		return idle{}, nil
	}
	in := fmt.Sprintf(" of profile %.64q", name)
	members, err := object(raw)
	if err != nil {
		return idle{}, fmt.Errorf("what it says%s is %w", in, err)
	}
	return readIdle(members, in)
}

// readIdle reads the two times of an object; in says of which one, for errors.
func readIdle(members map[string]json.RawMessage, in string) (i idle, err error) {
	if i.Shell, err = readTime(members, "shell_idle_ms", in); err != nil {
		return idle{}, err
	}
	i.Environment, err = readTime(members, "environment_idle_ms", in)
	return i, err
}

// readTime reads a positive whole number of milliseconds; none where there is
// no such member, or null.
func readTime(members map[string]json.RawMessage, name, in string) (*int64, error) {
	raw := members[name]
	if isNull(raw) {
		return nil, nil
	}
	var ms int64
	if err := json.Unmarshal(raw, &ms); err != nil || ms < 1 || ms > longest {
		return nil, fmt.Errorf("its %s%s is %.32s: it must be a whole number from 1 to %d, or null", name, in, raw, int64(longest))
	}
	return &ms, nil
}

// object reads a JSON object by the exact names of its members.
func object(raw []byte) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return nil, fmt.Errorf("no JSON object")
	}
	return members, nil
}

func isNull(raw json.RawMessage) bool { return raw == nil || string(raw) == "null" }
