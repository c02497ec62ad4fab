package boxinit

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"envapi/sandbox/protocol"
)

// spawn starts a command, or says why not; the reaper says the rest. It runs on
// the locked thread, whose restrictions the command inherits.
func (s *server) spawn(request *protocol.Spawn, fds []int) {
	if err := s.enter(request.Dir); err != nil {
		s.refuse(request.ID, true, err)
		return
	}
	defer func() { _ = unix.Chdir("/") }()
	p, err := newPlan(request, fds, s.setup.Limits)
	if err != nil {
		s.refuse(request.ID, false, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, errno := startReaper(p)
	if errno != 0 {
		s.send(protocol.Report{Refused: &protocol.Refused{ID: request.ID, Errno: errno}})
		return
	}
	c := &command{id: request.ID, plan: p, reaper: pid, gone: make(chan struct{}), marks: 1}
	s.commands[c.id], s.pids[pid] = c, c
	if s.noted != nil {
		s.noted[pid] = c
	}
	s.noticeChild()
}

// enter makes dir, absolute or below the workspace, the directory that the
// command starts in; the working directory is inherited.
func (s *server) enter(dir string) error {
	if err := unix.Chdir(s.setup.Workspace); err != nil {
		return err
	}
	if dir == "" {
		return nil
	}
	return unix.Chdir(dir)
}

func (s *server) refuse(id uint64, dir bool, err error) {
	s.send(protocol.Report{Refused: &protocol.Refused{ID: id, Dir: dir, Errno: errnoOf(err)}})
}

// newPlan lays everything ready for the fork.
func newPlan(request *protocol.Spawn, fds []int, limits []protocol.Limit) (*plan, error) {
	if len(request.Argv) == 0 || len(fds) != request.FDs() {
		return nil, unix.EINVAL
	}
	name := request.Argv[0]
	p := &plan{
		parent:  os.Getpid(),
		missing: []byte("envapi: " + name + ": command not found\n"),
		denied:  []byte("envapi: " + name + ": cannot execute\n"),
		limits:  make([]rlimit, len(limits)),
	}
	p.takeDescriptors(request, fds)
	for i, l := range limits {
		p.limits[i] = rlimit{uintptr(l.Resource), syscall.Rlimit{Cur: l.Value, Max: l.Value}}
	}
	var err [3]error
	p.argv, err[0] = syscall.SlicePtrFromStrings(request.Argv)
	p.envp, err[1] = syscall.SlicePtrFromStrings(request.Env)
	p.paths, err[2] = syscall.SlicePtrFromStrings(candidates(name, request.Path))
	p.paths = p.paths[:max(len(p.paths)-1, 0)] // without the nil at the end
	return p, errors.Join(err[:]...)
}

// takeDescriptors assigns the descriptors that came, in the protocol's order.
// Without them, the standard descriptors are the init's own: /dev/null.
func (p *plan) takeDescriptors(request *protocol.Spawn, fds []int) {
	next := func() int {
		fd := fds[0]
		fds = fds[1:]
		return fd
	}
	p.report = next()
	p.stdin, p.stdout, p.stderr, p.script, p.terminal = 0, 1, 2, -1, -1
	if !request.Silent {
		p.stdout = next()
		p.stderr = p.stdout
	}
	if !request.Silent && !request.Merge {
		p.stderr = next()
	}
	if request.Stdin {
		p.stdin = next()
	}
	if request.Script {
		p.script = next()
	}
	if request.Terminal {
		p.terminal = next()
	}
	p.groups = fds
}

// candidates gives the paths at which a program of this name may be.
func candidates(name, path string) []string {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	var paths []string
	for dir := range strings.SplitSeq(path, ":") {
		if strings.HasPrefix(dir, "/") {
			paths = append(paths, dir+"/"+name)
		}
	}
	return paths
}
