package core

import (
	"fmt"
	"time"
)

// Retention says how long what nobody uses is kept.
type Retention struct {
	Shell       Bounded       // an open shell
	Environment Bounded       // an active environment, until it is archived
	Box         time.Duration // what contains commands, while nothing of it lives
	Ended       time.Duration // commands that have ended, with their output, and closed shells
	Keys        time.Duration // idempotency keys; not longer than Ended
	Every       time.Duration // how often is looked
}

// check refuses times by which everything would be ended at once. Where Every is 0
// nothing is looked for, and nothing ended.
func (r Retention) check() error {
	if r.Every == 0 {
		return nil
	}
	for name, is := range map[string]time.Duration{
		"every": r.Every, "box": r.Box, "ended": r.Ended, "keys": r.Keys,
		"shell": min(r.Shell.Least, r.Shell.Default), "environment": min(r.Environment.Least, r.Environment.Default),
	} {
		if is <= 0 {
			return fmt.Errorf("the retention %s is %v: it must be more than 0", name, is)
		}
	}
	if r.Keys > r.Ended {
		return fmt.Errorf("the retention of keys is %v: it must not be longer than that of what they stand for, %v", r.Keys, r.Ended)
	}
	return nil
}

// shortest is how long nothing is idle enough, whoever asked for what.
func (b Bounded) shortest() time.Duration { return min(b.Default, b.Least) }

// Bounded is a time that callers may choose within bounds.
type Bounded struct{ Default, Least, Most time.Duration }

// within gives the time that is asked for as far as the bounds let it, and the default
// where none is.
func (b Bounded) within(asked *time.Duration) time.Duration {
	if asked == nil {
		return b.Default
	}
	return min(max(*asked, b.Least), b.Most)
}
