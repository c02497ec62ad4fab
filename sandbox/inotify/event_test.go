package inotify

import (
	"encoding/binary"
	"testing"
)

func FuzzNext(f *testing.F) {
	one := make([]byte, 32)
	binary.NativeEndian.PutUint32(one[12:], 16)
	copy(one[16:], "name")
	f.Add(one)
	f.Add(one[:20])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 { // it comes to an end, and reads nothing that is not there
			e, rest := next(b)
			if len(rest) >= len(b) || !e.whole && len(rest) != 0 {
				t.Fatalf("of %d bytes %d are left", len(b), len(rest))
			}
			b = rest
		}
	})
}

func TestAnEventIsRead(t *testing.T) {
	b := make([]byte, 32+16)
	binary.NativeEndian.PutUint32(b[0:], 5)
	binary.NativeEndian.PutUint32(b[4:], 0x100)
	binary.NativeEndian.PutUint32(b[12:], 16)
	copy(b[16:], "name")
	e, rest := next(b)
	if !e.whole || e.number != 5 || e.mask != 0x100 || e.name != "name" || len(rest) != 16 {
		t.Errorf("got %+v and %d bytes", e, len(rest))
	}
	if e, rest := next(b[:31]); e.whole || rest != nil {
		t.Errorf("half an event: got %+v", e)
	}
}
