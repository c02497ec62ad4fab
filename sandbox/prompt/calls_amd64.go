package prompt

import "golang.org/x/sys/unix"

// olderCalls are those that newer architectures were not given any more.
var olderCalls = map[int]func(*look, process, call) bool{
	unix.SYS_SELECT:     selects,
	unix.SYS_POLL:       polls,
	unix.SYS_EPOLL_WAIT: waits,
}
