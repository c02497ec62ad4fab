package store

import (
	"path/filepath"
	"testing"
)

func TestSettingsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envapi.db")
	s := openAt(t, path)
	want := func(account, want string) {
		t.Helper()
		if text, err := s.Settings(t.Context(), account); err != nil || text != want {
			t.Errorf("of %q: %q, %v, want %q", account, text, err, want)
		}
	}
	want("alice", "")
	for _, kept := range [][2]string{{"alice", `{"a": 1}`}, {"alice'\x00", "x"}, {"bob", "y"}, {"bob", "z\xff"}, {"carol", "c"}, {"carol", ""}} {
		if err := s.KeepSettings(t.Context(), kept[0], kept[1]); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		want("alice", `{"a": 1}`)
		want("alice'\x00", "x")
		want("bob", "z\xff")
		want("carol", "")
		want("Alice", "")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openAt(t, path)
	}
}
