package core

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The sizes of what callers name things with, in characters.
const (
	maxName       = 128
	maxLabels     = 32
	maxLabelKey   = 64
	maxLabelValue = 256
)

// check refuses what no environment can be made of.
func (in CreateEnvironmentInput) check(deployment Limits) error {
	if in.Network {
		return Errorf(CodeNetworkRefused, "this deployment allows no environment with a network: leave network out or false")
	}
	return firstError(
		checkName(in.Name),
		checkLabels(in.Labels),
		checkIdle(in.IdleMS, 1),
		in.Limits.check(deployment),
	)
}

// check refuses what no environment can be changed to.
func (in UpdateEnvironmentInput) check(deployment Limits) error {
	if in.Name != nil {
		if err := checkName(*in.Name); err != nil {
			return err
		}
	}
	if in.Labels != nil {
		if err := checkLabels(*in.Labels); err != nil {
			return err
		}
	}
	if err := checkIdle(in.IdleMS, 0); err != nil {
		return err
	}
	if in.Limits != nil {
		return in.Limits.check(deployment)
	}
	return nil
}

// checkIdle refuses an idle time that is none. One out of the deployment's bounds is
// brought within them.
func checkIdle(ms *int64, least int64) error {
	if ms != nil && *ms < least {
		return invalid("idle_ms", "idle_ms is %d: give %d or more", *ms, least)
	}
	return nil
}

func checkName(name string) error {
	if !isPlain(name, maxName) {
		return invalid("name", "name must be valid UTF-8 without control characters, at most %d characters", maxName)
	}
	return nil
}

// checkLabels also refuses "=" in a key, which ends the key where lists filter
// by label.
func checkLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return invalid("labels", "labels has %d entries: give at most %d", len(labels), maxLabels)
	}
	for key, value := range labels {
		if key == "" || strings.Contains(key, "=") || !isPlain(key, maxLabelKey) {
			return invalid("labels", "the label key %q must have 1 to %d characters, without \"=\" and control characters", key, maxLabelKey)
		}
		if !isPlain(value, maxLabelValue) {
			return invalid("labels", "the value of label %q must be valid UTF-8 without control characters, at most %d characters", key, maxLabelValue)
		}
	}
	return nil
}

// isPlain says whether s is text that can be shown on one line.
func isPlain(s string, characters int) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= characters && !strings.ContainsFunc(s, unicode.IsControl)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
