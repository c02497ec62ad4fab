package inside

import "golang.org/x/sys/unix"

// SetOpenat2 puts something in the place of the system's call, and gives what puts that
// back.
func SetOpenat2(f func(dir int, path string, how *unix.OpenHow) (int, error)) (restore func()) {
	openat2 = f
	return func() { openat2 = unix.Openat2 }
}
