package attack

import (
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls of a table are made one at a time, after all of it was laid out.
func TestTheArgumentsOfACallAreItsOwn(t *testing.T) {
	all := mountCalls()
	for id, want := range map[string][]string{
		"tmpfs": {"x", "/tmp", "tmpfs"}, "overlay": {"x", "/tmp", "overlay", "", "lowerdir=/usr:/bin"}, "fspick": {"", "/"},
	} {
		p := all[slices.IndexFunc(all, func(p plain) bool { return p.id == id })]
		for i, text := range want {
			if text == "" {
				continue
			}
			if got := unix.BytePtrToString(*(**byte)(unsafe.Pointer(&p.args[i]))); got != text {
				t.Errorf("argument %d of %s is %q, not %q", i, id, got, text)
			}
		}
	}
}
