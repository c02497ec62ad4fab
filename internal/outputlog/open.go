package outputlog

import (
	"fmt"
	"os"
	"syscall"
)

// openPath opens a file or a folder. Who can write to the data folder can put something
// else in its place: a link is not followed, and a FIFO not waited for.
func openPath(path string, flags int) (*os.File, error) {
	return os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
}

// openFile is openPath for a file.
func openFile(path string, flags int) (*os.File, error) {
	f, err := openPath(path, flags)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
