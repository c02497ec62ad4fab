//go:build !faults

package faults

// At does nothing in this build, and costs nothing. It takes a step, and what that is of.
func At(_, _ string) error { return nil }

// Tick does nothing in this build, and costs nothing.
func Tick(_, _ string) error { return nil }
