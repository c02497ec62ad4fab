package boxinit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"envapi/sandbox/protocol"
)

// sharePart is the part of what the kernel gives a user that a box may have.
const sharePart = 8

// shared are what the kernel counts for a box and for the user who made its user
// namespace too, which is the service's, and root's other programs (namespaces(7),
// /proc/sys/user): by the file with the limit of a user, and that of the namespace.
var shared = [...]struct{ ofUser, ofBox string }{
	{"/proc/sys/fs/inotify/max_user_instances", "/proc/sys/user/max_inotify_instances"},
	{"/proc/sys/fs/inotify/max_user_watches", "/proc/sys/user/max_inotify_watches"},
}

// takeShares bounds the box's user namespace, which has no bounds of its own, so
// that one box leaves something to the others and to the host.
func takeShares(*protocol.Setup, []int) error {
	for _, s := range shared {
		err := takeShare(s.ofUser, s.ofBox)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without inotify
			return fmt.Errorf("cannot bound what the box shares with others: %w", err)
		}
	}
	return nil
}

func takeShare(ofUser, ofBox string) error {
	content, err := os.ReadFile(ofUser)
	if err != nil {
		return err
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	if err != nil {
		return err
	}
	share := max(limit/sharePart, 1)
	f, err := os.OpenFile(ofBox, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.FormatInt(share, 10))
	return errors.Join(err, f.Close())
}
