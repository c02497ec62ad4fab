package namespace_test

import (
	"io"
	"os"
	"os/exec"
	"testing"

	"envapi/sandbox"
)

// The parts of what `make bench` measures from outside.

func BenchmarkStart(b *testing.B) {
	box := benchBox(b)
	for _, c := range []struct {
		name    string
		command sandbox.Command
	}{
		{"bash", sandbox.Command{Script: "true", Stdout: io.Discard, Stderr: io.Discard}},
		{"true", sandbox.Command{Argv: []string{"true"}, Stdout: io.Discard, Stderr: io.Discard}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				p, err := box.Start(b.Context(), c.command)
				if err != nil {
					b.Fatal(err)
				}
				<-p.Done()
			}
		})
	}
	b.Run("true on a terminal", func(b *testing.B) {
		for b.Loop() {
			p, err := box.Start(b.Context(), sandbox.Command{
				Argv: []string{"true"}, Stdout: io.Discard, Terminal: &sandbox.Size{Cols: 80, Rows: 24},
			})
			if err != nil {
				b.Fatal(err)
			}
			<-p.Quiet() // a box has only so many
		}
	})
	b.Run("bare bash", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("bash", "-c", "true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	h, tier := newTier(b)
	spec := sandbox.Spec{ID: "bench", Workspace: workspace(b, tier.UID), UID: tier.UID, Limits: sandbox.Limits{Processes: 64}}
	for b.Loop() {
		box, err := h.Open(b.Context(), spec)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := box.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func benchBox(b *testing.B) sandbox.Box {
	b.Helper()
	h, tier := newTier(b)
	box, err := h.Open(b.Context(), sandbox.Spec{ID: "bench", Workspace: workspace(b, tier.UID), UID: tier.UID, Limits: sandbox.Limits{Processes: 64}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = box.Close() })
	return box
}

func workspace(tb testing.TB, uid int) string {
	tb.Helper()
	dir := tb.TempDir()
	if uid != 0 {
		if err := os.Chown(dir, uid, uid); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}
