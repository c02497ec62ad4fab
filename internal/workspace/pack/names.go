package pack

import (
	"strings"

	"golang.org/x/sys/unix"
)

// clean gives what the name of an entry means below the directory that is unpacked
// into, "" being that itself. It refuses what leads out of it, or can be no path.
func clean(name string) (string, error) {
	switch {
	case strings.ContainsRune(name, 0):
		return "", bad("the name %q holds a NUL byte", name)
	case strings.HasPrefix(name, "/"):
		return "", bad("the name %q is absolute; pack with names that are relative", name)
	case len(name) >= unix.PathMax:
		return "", bad("it has a name of %d bytes: the longest has %d", len(name), unix.PathMax-1)
	}
	parts := make([]string, 0, strings.Count(name, "/")+1)
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "..":
			return "", bad("the name %q leads out by \"..\"", name)
		case len(part) > unix.NAME_MAX:
			return "", bad("it has a name of %d bytes: the longest has %d", len(part), unix.NAME_MAX)
		case part != "" && part != ".":
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/"), nil
}

// split cuts a clean path before its last name.
func split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}
