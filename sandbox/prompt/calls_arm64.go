package prompt

// olderCalls are none: arm64 has only pselect6, ppoll and epoll_pwait.
var olderCalls map[int]func(*look, process, call) bool
