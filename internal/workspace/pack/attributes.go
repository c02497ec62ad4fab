package pack

import (
	"bytes"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"envapi/core"
)

const (
	// mostAttributes is how many bytes of extended attributes a file may have that is
	// packed: readers of tars take records of 1 MiB in all for each.
	mostAttributes = 512 << 10
	userPrefix     = "user."
	// valueBytes is the longest value that the kernel takes (xattr(7)).
	valueBytes = 64 << 10
)

// A record's name ends at the first "=", so it and "%" are escaped as GNU tar does.
var (
	escaped   = strings.NewReplacer("%", "%25", "=", "%3D")
	unescaped = strings.NewReplacer("%25", "%", "%3D", "=", "%3d", "=")
)

// attributes gives the user extended attributes of an open file or directory as
// records of a tar.
func attributes(f *os.File) (map[string]string, error) {
	list := make([]byte, valueBytes)
	n, err := unix.Flistxattr(int(f.Fd()), list)
	if unsupported(err) || n == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	records, left := map[string]string{}, mostAttributes
	for name := range bytes.SplitSeq(list[:n], []byte{0}) {
		if !bytes.HasPrefix(name, []byte(userPrefix)) {
			continue
		}
		value, err := attribute(f, string(name))
		if err != nil {
			return nil, err
		}
		if left -= len(name) + len(value); left < 0 {
			return nil, core.Errorf(core.CodeTooLarge, "cannot pack a file with more than %d bytes of extended attributes", mostAttributes).With("allowed_bytes", mostAttributes)
		}
		records[attributePrefix+escaped.Replace(string(name))] = value
	}
	return records, nil
}

// attribute gives one; what is gone meanwhile is empty.
func attribute(f *os.File, name string) (string, error) {
	size, err := unix.Fgetxattr(int(f.Fd()), name, nil)
	value := make([]byte, max(size, 0)+64) // it may grow a little meanwhile
	if err == nil {
		size, err = unix.Fgetxattr(int(f.Fd()), name, value)
	}
	if errors.Is(err, unix.ENODATA) || unsupported(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return string(value[:size]), nil
}

// setAttributes gives an open file the user extended attributes among the records of
// a tar, as far as its file system has any. Others are not taken: the service could
// set some that the user may not.
func setAttributes(f *os.File, records map[string]string) error {
	for key, value := range records {
		name, ok := strings.CutPrefix(key, attributePrefix)
		name = unescaped.Replace(name)
		if !ok || !strings.HasPrefix(name, userPrefix) {
			continue
		}
		if strings.ContainsRune(name, 0) || len(name) > unix.NAME_MAX || len(value) > valueBytes {
			return bad("an extended attribute is longer than the kernel takes, or its name has a NUL byte")
		}
		err := unix.Fsetxattr(int(f.Fd()), name, []byte(value), 0)
		if unsupported(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func unsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS)
}
