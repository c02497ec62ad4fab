package boxinit

import "testing"

func TestWhatWasReadLeavesItsPlaceToTheNext(t *testing.T) {
	s := &server{slow: make(chan struct{}, maxStuck)}
	for range 10_000 {
		if _, ok := patiently(s, func() int { return 0 }); ok && len(s.slow) != 0 {
			t.Fatal("it is read, and its place is still taken")
		}
	}
}
