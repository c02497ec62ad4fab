package hostfiles

import (
	"path/filepath"

	"envapi/sandbox/protocol"
)

// accounts are files of /etc that a box without a file tree of its own sees as
// the host has them.
var accounts = []string{"passwd", "group", "hosts"}

// Access gives the Landlock rules of a box that lives on the host's file tree:
// the system's programs, its workspace and its temporary folder. Nothing else
// of the host can be opened, whatever its modes say.
//
// Terminals are nothing of it: with /dev/ptmx one box could take all that the
// host has, and with /dev/pts those of whoever has the same uid could be read and
// written. A command gets its own by descriptor, and as /dev/tty.
func Access(workspace, tmp string) []protocol.Access {
	rules := []protocol.Access{
		{Path: workspace, Write: true},
		{Path: tmp, Write: true},
		{Path: "/proc"},
	}
	for _, folder := range Folders {
		rules = append(rules, protocol.Access{Path: folder, Optional: true})
	}
	for _, names := range [][]string{accounts, Etc} {
		for _, name := range names {
			rules = append(rules, protocol.Access{Path: filepath.Join("/etc", name), Optional: true})
		}
	}
	for _, name := range Devices {
		rules = append(rules, protocol.Access{Path: "/dev/" + name, Write: true, Optional: true})
	}
	return rules
}
