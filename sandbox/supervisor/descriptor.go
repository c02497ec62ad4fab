package supervisor

import "os"

// control does something with the descriptor of a file that another goroutine may
// close: that waits meanwhile, so that the number is no other file's. Of one that
// is closed it says os.ErrClosed.
func control(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return os.ErrClosed // which package os says here in words of its own
	}
	return failed
}
