package prompt_test

import "testing"

// BenchmarkLook is one look at a shell with a program in its foreground and some
// in its background.
func BenchmarkLook(b *testing.B) {
	d := seat(b, bash("for i in 1 2 3 4 5; do sleep 300 & done; cat; :")...)
	d.waits()
	for b.Loop() {
		if !d.Look().Reading {
			b.Fatal("it is not seen to read")
		}
	}
}

// BenchmarkLookAtManyThreads is one that a hostile program makes as long as it
// can.
func BenchmarkLookAtManyThreads(b *testing.B) {
	d := seat(b, "python3", "-c", hostile[0].program)
	d.await("ready")
	for b.Loop() {
		if d.Look().Reading {
			b.Fatal("it is said to read")
		}
	}
}

// BenchmarkLookAtManyChildren is the same with processes.
func BenchmarkLookAtManyChildren(b *testing.B) {
	d := seat(b, "python3", "-c", hostile[1].program)
	d.await("ready")
	for b.Loop() {
		if d.Look().Reading {
			b.Fatal("it is said to read")
		}
	}
}
