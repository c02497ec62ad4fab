package proctree

import "bytes"

// Field gives a line of a /proc/PID/status by its name, "" where there is none.
// The name of the process, which may hold anything, is the first line and escaped
// there.
func Field(status []byte, name string) string {
	_, after, _ := bytes.Cut(status, []byte("\n"+name+":\t"))
	value, _, _ := bytes.Cut(after, []byte("\n"))
	return string(value)
}
