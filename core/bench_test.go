package core_test

import (
	"testing"
)

// BenchmarkExec is what core, store and log add to a command, in a sandbox that
// costs nothing.
func BenchmarkExec(b *testing.B) {
	w := newWorld(b)
	env := w.create()
	for b.Loop() {
		w.run(env.ID, "exit 0")
	}
}
