package core_test

import (
	"testing"
	"time"

	"envapi/core"
	"envapi/sandbox"
)

// TestALookThatTellsNothingIsFollowedByOthers: nobody may look at a program while
// it is being executed, and its prompt comes after that.
func TestALookThatTellsNothingIsFollowedByOthers(t *testing.T) {
	fake := newFakeTerminal(sandbox.Size{Cols: 80, Rows: 24})
	fake.readers, fake.blind = 1, true
	go func() {
		for fake.looked() == 0 {
			time.Sleep(time.Millisecond) // between two looks, not for a thing
		}
		fake.mu.Lock()
		defer fake.mu.Unlock()
		fake.blind = false
	}()
	if !core.WaitsToBeRead(t.Context(), fake) {
		t.Error("one look told nothing, and the prompt was never seen")
	}
}

// TestAHostThatNeverTellsIsNotAskedForEver: a wait goes on without looking.
func TestAHostThatNeverTellsIsNotAskedForEver(t *testing.T) {
	fake := newFakeTerminal(sandbox.Size{Cols: 80, Rows: 24})
	fake.blind = true
	if core.WaitsToBeRead(t.Context(), fake) {
		t.Error("a prompt was made up")
	}
	if n := fake.looked(); n < 2 || n > 20 {
		t.Errorf("it looked %d times", n)
	}
}

func TestThePromptOfTheNextOneIsNotThatOfTheOneBefore(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Store = &flaky{Store: w.config.Store, failures: 4} })
	sh := w.shellIn(w.create().ID)
	first, second := w.inShell(sh.ID, "wait", atOnce), w.inShell(sh.ID, "read", queued)
	w.signal(first.ID, "TERM")
	eventually(t, "the next one runs", func() bool { return w.shell(sh.ID).RunningCommandID == second.ID })
	// Its end cannot be recorded yet.
	if got, err := w.GetCommand(t.Context(), alice, core.GetCommandInput{CommandID: first.ID}); err != nil || got.WaitingForInput == nil || *got.WaitingForInput {
		t.Errorf("got %+v, %v", got, err)
	}
	if got := w.await(first.ID); got.Status != core.CommandSignaled {
		t.Errorf("got %+v", got)
	}
	w.writeShell(sh.ID, "\n")
	w.await(second.ID)
}
