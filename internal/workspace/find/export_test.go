package find

import "os"

// Remembers says whether the names of a directory are remembered.
func Remembers(path string) bool {
	dir, err := os.Open(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	key, _ := momentOf(&names{dir: dir})
	return pages.get(key) != nil
}

// WindowBytes is how much of a file is in memory at a time.
const WindowBytes = windowBytes
