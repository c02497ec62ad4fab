package attack

import "golang.org/x/sys/unix"

// limitRows are attacks that would take more than a box may.
func limitRows() []Row {
	rows := []Row{
		{ID: "nice", Stands: "D12", Tries: "to be more important than others", Expect: everywhere("refused EACCES | refused EPERM"), run: func(*Targets) string {
			return calls{{number: unix.SYS_SETPRIORITY, args: [6]uintptr{unix.PRIO_PROCESS, 0, ^uintptr(4)}}}.verdict("it is")
		}},
		{ID: "realtime", Stands: "D12", Tries: "to be scheduled before everybody", Expect: everywhere("refused EPERM"), run: func(*Targets) string {
			const priority = int32(1)
			return calls{{number: unix.SYS_SCHED_SETSCHEDULER, args: [6]uintptr{0, unix.SCHED_FIFO, pointer(priority)}}}.verdict("it is")
		}},
		{ID: "io-realtime", Stands: "D12", Tries: "to have the disk before everybody", Expect: everywhere("refused EPERM"), run: func(*Targets) string {
			return calls{{number: unix.SYS_IOPRIO_SET, args: [6]uintptr{1, 0, 1 << 13}}}.verdict("it has")
		}},
		{ID: "lock-memory", Stands: "D12", Tries: "to lock all of its memory", Expect: everywhere("refused ENOMEM | refused EPERM"), run: func(*Targets) string {
			return calls{{number: unix.SYS_MLOCKALL, args: [6]uintptr{unix.MCL_CURRENT}}}.verdict("it is locked")
		}},
		{ID: "personality", Stands: "D6, CVE-2009-1895", Tries: "to be laid out where an exploit wants it", Expect: everywhere("refused EPERM"), run: func(*Targets) string {
			return calls{{number: unix.SYS_PERSONALITY, args: [6]uintptr{0x0040000 | 0x0100000}}}.verdict("it is")
		}},
	}
	for _, r := range []struct {
		id       string
		resource uintptr
	}{
		{"core", unix.RLIMIT_CORE},
		{"files", unix.RLIMIT_NOFILE},
		{"locked", unix.RLIMIT_MEMLOCK},
	} {
		rows = append(rows, Row{
			ID: "raise-" + r.id, Stands: "D12, resource limits", Tries: "to raise its limit of " + r.id, Expect: everywhere("refused EPERM"),
			run: func(*Targets) string {
				limit := unix.Rlimit{Cur: 1 << 20, Max: 1 << 40}
				return calls{{number: unix.SYS_PRLIMIT64, args: [6]uintptr{0, r.resource, pointer(limit), 0}}}.verdict("it is raised")
			},
		})
	}
	return append(rows, Row{
		ID: "raise-processes", Stands: "D12, resource limits", Tries: "to raise its limit of processes",
		Expect: Expect{User: "refused EPERM", Namespace: "refused EPERM"}, run: func(*Targets) string {
			limit := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
			return calls{{number: unix.SYS_PRLIMIT64, args: [6]uintptr{0, unix.RLIMIT_NPROC, pointer(limit), 0}}}.verdict("it is raised")
		},
	})
}
