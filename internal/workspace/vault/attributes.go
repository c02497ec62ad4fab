package vault

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	userPrefix = "user."
	// accessList and defaultList are the extended attributes that access lists are in.
	// The latter is of directories, and goes over to what is made in them.
	accessList  = "system.posix_acl_access"
	defaultList = "system.posix_acl_default"
	// mostAttributes is how many bytes of extended attributes a file may have: readers
	// of tars take records of 1 MiB in all for each.
	mostAttributes = 512 << 10
	// valueBytes is the longest value, and the longest list of names, that the kernel
	// takes (xattr(7)).
	valueBytes = 64 << 10
)

// attribute is an extended attribute.
type attribute struct{ name, value string }

// kept says whether an attribute is one that the owner of a file may set, and that is
// packed.
func kept(name string) bool {
	return strings.HasPrefix(name, userPrefix) && len(name) > len(userPrefix) || name == accessList || name == defaultList
}

// attributesOf gives those of a file that are kept, in the order of their names.
func attributesOf(f *os.File) ([]attribute, error) {
	size, err := unix.Flistxattr(fd(f), nil)
	if unsupported(err) || size == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the extended attributes of a file: %w", err)
	}
	list := make([]byte, valueBytes)
	if size, err = unix.Flistxattr(fd(f), list); err != nil {
		return nil, fmt.Errorf("list the extended attributes of a file: %w", err)
	}
	var all []attribute
	left := mostAttributes
	for name := range bytes.SplitSeq(list[:size], []byte{0}) {
		if !kept(string(name)) {
			continue
		}
		value, err := valueOf(f, string(name))
		if errors.Is(err, unix.ENODATA) {
			continue // gone meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("read an extended attribute of a file: %w", err)
		}
		if left -= len(name) + len(value); left < 0 {
			return nil, fmt.Errorf("keep the extended attributes of a file, which has more than %d bytes of them: %w", mostAttributes, unix.E2BIG)
		}
		all = append(all, attribute{string(name), value})
	}
	slices.SortFunc(all, func(a, b attribute) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

func valueOf(f *os.File, name string) (string, error) {
	for {
		size, err := unix.Fgetxattr(fd(f), name, nil)
		if err != nil {
			return "", err
		}
		value := make([]byte, size+1) // none at all would ask for the size again
		size, err = unix.Fgetxattr(fd(f), name, value)
		if errors.Is(err, unix.ERANGE) {
			continue // it has grown meanwhile
		}
		if err != nil {
			return "", err
		}
		return string(value[:size]), nil
	}
}

// setAttributes gives a file what another one had. Where the file system has none of a
// kind there are none.
func setAttributes(f *os.File, all []attribute) error {
	for _, a := range all {
		err := unix.Fsetxattr(fd(f), a.name, []byte(a.value), 0)
		if err != nil && !unsupported(err) {
			return fmt.Errorf("set an extended attribute of a file: %w", err)
		}
	}
	return nil
}

func unsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS)
}
