package store

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkCommand is the store's part of one exec: a keyed CreateCommand that
// counts against its limit, and the FinishCommand.
func BenchmarkCommand(b *testing.B) {
	s := openNew(b)
	ctx := context.Background()
	mustCreate(b, s, alice, "env_1")
	for i := range 20 { // as many run beside it
		mustRun(b, s, alice, "env_1", fmt.Sprintf("cmd_beside_%d", i))
	}
	b.ResetTimer()
	for i := range b.N {
		id := fmt.Sprintf("cmd_%d", i)
		if _, _, _, err := s.CreateCommand(ctx, cmd(alice, "env_1", id), 50, key(id, "f")); err != nil {
			b.Fatal(err)
		}
		if err := s.FinishCommand(ctx, id, exited(0)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadEnvironment(b *testing.B) {
	s := openNew(b)
	mustCreate(b, s, alice, "env_1")
	for b.Loop() {
		if _, err := s.Environment(context.Background(), alice, "env_1"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCreateEnvironment(b *testing.B) {
	s := openNew(b)
	for i := range b.N {
		mustCreate(b, s, alice, fmt.Sprintf("env_%d", i))
	}
}

// BenchmarkDeleteEnvironment is how long the others wait while an environment
// in which 10 000 commands ran is deleted.
func BenchmarkDeleteEnvironment(b *testing.B) {
	s := openNew(b)
	for range b.N {
		b.StopTimer()
		mustCreate(b, s, alice, "env_1")
		for i := range 10_000 {
			id := fmt.Sprintf("cmd_%d", i)
			if _, _, _, err := s.CreateCommand(context.Background(), cmd(alice, "env_1", id), 1<<20, key(id, "f")); err != nil {
				b.Fatal(err)
			}
			if err := s.FinishCommand(context.Background(), id, exited(0)); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		if err := s.DeleteEnvironment(context.Background(), alice, "env_1"); err != nil {
			b.Fatal(err)
		}
	}
}
