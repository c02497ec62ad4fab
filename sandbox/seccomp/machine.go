package seccomp

import (
	"fmt"
	"maps"
	"slices"

	"github.com/elastic/go-seccomp-bpf/arch"
)

// machine is an architecture that filters are made for.
type machine struct {
	table *arch.Info
	// lacks are calls that another architecture has. On x86-64 they are the old
	// forms of calls that both have.
	lacks []string
	// foreign is the first number of another table that a filter cannot tell by
	// the architecture; 0 where there is none.
	foreign uint32
}

// x32 is where the numbers of x86-64's other ABI begin (__X32_SYSCALL_BIT).
const x32 = 0x40000000

// machines gives the architectures by GOARCH.
func machines() map[string]machine {
	return map[string]machine{
		"amd64": {table: arch.X86_64, foreign: x32, lacks: []string{"fstatat"}},
		"arm64": {table: arch.AARCH64, lacks: []string{
			"access", "alarm", "arch_prctl", "chmod", "chown", "creat", "dup2", "epoll_create", "epoll_wait",
			"eventfd", "fork", "futimesat", "getdents", "getpgrp", "inotify_init", "ioperm", "iopl", "lchown",
			"link", "lstat", "mkdir", "mknod", "modify_ldt", "newfstatat", "open", "pause", "pipe", "poll", "readlink",
			"rename", "rmdir", "select", "signalfd", "stat", "symlink", "time", "unlink", "uretprobe",
			"utime", "utimes", "vfork",
		}},
	}
}

// decision is what the rules say about one call.
type decision struct {
	number uint32
	rules  []rule
}

// decisions gives the rules of every call that the machine has, by number. A
// name that the machine has not, and is not known to lack, is an error: a
// misspelt name would otherwise be a hole.
func (m machine) decisions(rules []rule, s Shares) ([]decision, error) {
	byNumber := map[uint32][]rule{}
	for _, r := range rules {
		for _, name := range r.names() {
			number, ok := m.table.SyscallNames[name]
			if ok == slices.Contains(m.lacks, name) {
				return nil, fmt.Errorf("cannot make a filter for %s: whether it has %s is not clear", m.table.Name, name)
			}
			if ok && r.applies(s) {
				byNumber[uint32(number)] = append(byNumber[uint32(number)], r) //nolint:gosec // the table's numbers are small
			}
		}
	}
	all := make([]decision, 0, len(byNumber))
	for _, number := range slices.Sorted(maps.Keys(byNumber)) {
		all = append(all, decision{number, upToTheFirst(byNumber[number])})
	}
	return all, nil
}

// upToTheFirst leaves out what comes behind a rule that always decides.
func upToTheFirst(rules []rule) []rule {
	for i, r := range rules {
		if len(r.when) == 0 {
			return rules[:i+1]
		}
	}
	return rules
}
