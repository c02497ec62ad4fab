package mutation

// mutation is a control that is off.
type mutation struct {
	control string
	edits   []edit
	tests   string // the package of the tests that must notice: below sandbox
	run     string // which of them
	// says is what a failing run shows: the rows that fail, or where the control
	// has a second one behind it, what that says.
	says string
}

// edit replaces a text wherever it is in a file.
type edit struct{ file, before, after string }

const (
	stages     = "sandbox/boxinit/stages.go"
	privileges = "sandbox/boxinit/privileges.go"
	root       = "sandbox/boxinit/root.go"
	reaper     = "sandbox/boxinit/reaper.go"
	embryo     = "sandbox/supervisor/embryo.go"
	launcher   = "sandbox/supervisor/launcher.go"
	limits     = "sandbox/supervisor/limits.go"
	access     = "sandbox/hostfiles/access.go"
	terminal   = "sandbox/supervisor/terminal.go"
	filetree   = "sandbox/namespace/filetree.go"
	hierarchy  = "sandbox/cgroup/hierarchy.go"
)

// unverified takes away the init's own look at what it did, which would
// otherwise refuse to serve before a suite could notice.
var unverified = edit{stages, `	{"verify", nil, verify},` + "\n", ""}

func without(line string) edit { return edit{stages, "\t" + line + "\n", ""} }

// mutations are all of them.
func mutations() []mutation {
	all := namespaceMutations()
	all = append(all, identityMutations()...)
	all = append(all, fileMutations()...)
	all = append(all, privilegeMutations()...)
	all = append(all, shellMutations()...)
	all = append(all, processMutations()...)
	return append(all, limitMutations()...)
}

// namespaceMutations: the kernel or the next stage refuses most of them, and
// with that the box.
func namespaceMutations() []mutation {
	const suite, own = "Conformance/holds", "every_namespace_is_its_own"
	flag := func(name, before, says string) mutation {
		return mutation{"the " + name + " namespace", []edit{{embryo, before, ""}}, "namespace", suite, says}
	}
	return []mutation{
		flag("user", "unix.CLONE_NEWUSER | ", "cannot"),
		flag("mount", "unix.CLONE_NEWNS | ", "cannot"),
		flag("pid", "unix.CLONE_NEWPID | ", "not the first process of its pid namespace"),
		flag("network", " | unix.CLONE_NEWNET", "cannot bring up the loopback interface"),
		flag("ipc", "unix.CLONE_NEWIPC | ", own),
		flag("host name", "unix.CLONE_NEWUTS | ", "cannot set the host name"),
		flag("cgroup", " | unix.CLONE_NEWCGROUP", own),
	}
}

func identityMutations() []mutation {
	return []mutation{
		{"one uid is mapped", []edit{{embryo, `{"uid_map", fmt.Sprintf("%d %d 1", n.Inside, n.UID)}`, `{"uid_map", fmt.Sprintf("%d %d 2", n.Inside, n.UID)}`}}, "namespace", "Conformance/attacks", "attacks/uid"},
		{"uid 0 is not mapped to the host's", []edit{{embryo, `{"uid_map", fmt.Sprintf("%d %d 1", n.Inside, n.UID)}`, `{"uid_map", fmt.Sprintf("%d 0 1", n.Inside)}`}}, "namespace", "Conformance/holds", "FAIL"},
		{"the groups are dropped", []edit{{stages, "if dropGroups {", "if false {"}, unverified}, "namespace", "TestTheServicesGroupsAreDroppedAsRoot", "FAIL"},
		{"the init is not dumpable", []edit{{stages, "unix.PR_SET_DUMPABLE, 0", "unix.PR_SET_DUMPABLE, 1"}}, "namespace", "Conformance/attacks", "attacks/reaper-mem"},
		{"a stop is not taken for an end", []edit{{reaper, "if !p.child.hasEnded() {", "if false {"}}, "namespace", "Conformance/attacks", "attacks/reaper-tracer"},
		{"nobody is root", []edit{{stages, "SYS_SETRESUID, own, own, own", "SYS_SETRESUID, 0, 0, 0"}, unverified}, "user", "ConformanceWithLandlock/attacks", "cannot run as uid 0"},
		{"a uid is the box's alone", []edit{without(`{"alone", takesHostUID, alone},`)}, "user", "TestABoxHasItsUIDForItself", "FAIL"},
		{"the service is not dumpable", []edit{{"sandbox/host/host.go", "unix.PR_SET_DUMPABLE, 0", "unix.PR_SET_DUMPABLE, 1"}}, "host", "TestTheServiceIsNotDumpable", "FAIL"},
		{"the program of the init is sealed", []edit{{launcher, " | unix.F_SEAL_WRITE", ""}}, "supervisor", "Sealed", "FAIL: TestSealedFilesCannotBeChanged"},
	}
}

func fileMutations() []mutation {
	const suite = "Conformance/(holds|attacks)"
	return []mutation{
		{"the host's root is let go of", []edit{{root, `	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {`, `	if err := error(nil); err != nil {`}}, "namespace", suite, "old-root|only_what_is"},
		{"the system's folders are read-only", []edit{{root, "if !e.Writable {", "if false {"}}, "namespace", suite, "only_what_is_the_box"},
		{"the root is read-only", []edit{{root, "Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV", "Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV"}}, "namespace", suite, "only_what_is_the_box"},
		{"no mount obeys setuid", []edit{{root, "attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}", "attributes := unix.MountAttr{}"}}, "namespace", suite, "attacks/setuid-mounts"},
		{"no mount obeys device nodes", []edit{{root, "if !e.Device {", "if false {"}}, "namespace", suite, "attacks/device-mounts"},
		{"/dev and /proc hold no programs", []edit{{root, "if e.NoExec {", "if false {"}}, "namespace", suite, "no_programs_in"},
		{"/tmp is bounded", []edit{{filetree, "tmpBytes   = 512 << 20", "tmpBytes   = 512 << 30"}}, "namespace", suite, "are_bounded"},
		{"/dev/shm is bounded", []edit{{filetree, "shmBytes   = 64 << 20", "shmBytes   = 64 << 30"}}, "namespace", suite, "are_bounded"},
		{"what counts for the user too is bounded", []edit{without(`{"shares", namespaces, takeShares},`)}, "namespace", "TestD12SharesOfTheUser", "inotify"},
		{"terminals are bounded", []edit{{root, `, "max="+strconv.Itoa(protocol.Terminals)`, ""}}, "namespace", "TestD12Terminals", "FAIL"},
		{"no terminals of the host's", []edit{{access, `{Path: "/proc"},`, `{Path: "/proc"}, {Path: "/dev/pts", Write: true}, {Path: "/dev/ptmx", Write: true},`}}, "directory", "ConformanceWithLandlock/(attacks|terminals)", "attacks/many-terminals"},
		{"a terminal is the box's", []edit{{terminal, "if _, err = b.given(slave, nil); err == nil {", "if err == nil {"}}, "namespace", "Conformance/terminals", "terminals/it_can_be_opened_by_name"},
		{"a terminal controls its session", []edit{{reaper, "	if p.terminal >= 0 {", "	if false {"}}, "namespace", "Conformance/terminals", "terminals/it_controls"},
		{"no descriptor of the host's tree", []edit{without(`{"descriptors", nil, descriptors},`)}, "namespace", suite, "no_descriptor_refers"},
		{"descriptors are closed", []edit{{reaper, "syscall.RawSyscall(unix.SYS_CLOSE_RANGE, first, ", "syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 1000+first, "}}, "namespace", suite, "attacks/descriptors"},
	}
}

func privilegeMutations() []mutation {
	const suite = "Conformance/attacks"
	return []mutation{
		{"the capabilities", []edit{without(`{"capabilities", nil, dropCapabilities},`), unverified}, "namespace", suite, "attacks/capabilities"},
		{"the look at the capabilities", []edit{without(`{"capabilities", nil, dropCapabilities},`)}, "namespace", suite, "cannot lock down"},
		{"the bounding set", []edit{{privileges, "if err := emptyBoundingSet(); err != nil {", "if err := error(nil); err != nil {"}, unverified}, "namespace", suite, "attacks/bounding-set"},
		{"no_new_privs", []edit{without(`{"no_new_privs", nil, noNewPrivs},`), unverified}, "namespace", suite, "landlock|seccomp"},
		{"seccomp", []edit{without(`{"seccomp", nil, filter},`), unverified}, "namespace", suite, "attacks/seccomp-mode"},
		{"the look at seccomp", []edit{without(`{"seccomp", nil, filter},`)}, "namespace", suite, "cannot lock down"},
		{"Landlock in the user tier", []edit{without(`{"landlock", hasLandlock, restrict},`)}, "user", "ConformanceWithLandlock/attacks", "attacks/home"},
		{"Landlock in the directory tier", []edit{without(`{"landlock", hasLandlock, restrict},`)}, "directory", "ConformanceWithLandlock/attacks", "attacks/secret-read"},
		{"seccomp in the directory tier", []edit{without(`{"seccomp", nil, filter},`), unverified}, "directory", "ConformanceWithLandlock/attacks", "attacks/udp"},
	}
}

// processMutations: what keeps signals and waits to the box's own processes, and to
// those that are meant.
func processMutations() []mutation {
	const claim, held = "sandbox/boxinit/claim.go", "sandbox/proctree/held.go"
	const list, questions = "sandbox/supervisor/list.go", "sandbox/supervisor/question.go"
	return []mutation{
		{"a process descends from the init", []edit{{claim, "if line[len(line)-1].parent != top {", "if false {"}}, "user", "ConformanceWithoutLandlock/processes/ruled/D14", "of another box"},
		{"a reaper is no process of a box", []edit{{claim, "if s.isReaper(held.PID) || held.Reaped() {", "if held.Reaped() {"}}, "namespace", "Conformance/processes/ruled/D14", "the reaper"},
		{"another process with the pid is not meant", []edit{{claim, "if aim.Birth != 0 && aim.Birth != birth {", "if aim.Birth == birth+1<<40 {"}}, "namespace", "Conformance/processes/ruled/D20", "D20"},
		{"a tree of what is gone is empty", []edit{{held, "if err != nil || !h.Reaped() {", "if true {"}}, "proctree", "TestATreeOfWhatIsGone", "FAIL"},
		{"waits are counted", []edit{{questions, "case q.wait && b.waits >= maxWaits:", "case false:"}}, "namespace", "Conformance/processes/ruled/only_so_many", "more wait than may"},
		{"a listing does not grow", []edit{{list, "|unix.F_SEAL_GROW", ""}}, "supervisor", "TestAListIsWritten", "behind its end"},
	}
}

// shellMutations: what the service makes in a box for its shells, and believes of
// them.
func shellMutations() []mutation {
	const follow, frame, folder = "sandbox/supervisor/shell_follow.go", "sandbox/frames/frame.go", "sandbox/frames/folder.go"
	const suite = "Conformance/shells/"
	return []mutation{
		{"a record counts if the script was opened", []edit{{follow, "	case <-timer.C:\n		return corrupt\n", "	case <-timer.C:\n		return recorded\n"}}, "namespace", suite + "A55_(a_function|the_dot)", "dot"},
		{"a record has the nonce", []edit{{frame, `digits, ok := strings.CutPrefix(name, nonce+".")`, `_, digits, ok := strings.Cut(name, ".")`}}, "frames", "TestOnlyTheRecordIsOne", "is taken for"},
		{"the record that was asked for again counts for interrupts only", []edit{{frame, "return code, ok && code == Interrupted", "return code, ok"}}, "frames", "TestOnlyTheRecordIsOne", "is taken for"},
		{"no link is followed to a pipe", []edit{{folder, "flags | unix.O_NONBLOCK | unix.O_NOFOLLOW", "flags | unix.O_NONBLOCK"}, {folder, "Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV", "Resolve: 0"}}, "frames", "TestWhatIsNoPipe", "link was opened"},
		{"only a FIFO is a pipe", []edit{{frame, "stat.Mode&unix.S_IFMT != unix.S_IFIFO", "false"}}, "frames", "TestWhatIsNoPipe", "file was opened"},
		{"both ends are of one pipe", []edit{{frame, "if !os.SameFile(one, other) {", "if !os.SameFile(one, other) && false {"}}, "frames", "TestPipesThatWereSwapped", "FAIL"},
		{"a script replaces nothing", []edit{{frame, "unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW", "unix.O_CREAT"}}, "frames", "TestTheScriptReplaces", "FAIL"},
		{"frames are made as the box's user", []edit{{folder, "fsuser.Do(p.UID, p.GID, f.make)", "f.make()"}}, "namespace", suite + "true_and_false", "cannot make a folder"},
		{"files are touched as the user", []edit{{"sandbox/fsuser/fsuser.go", "	set(unix.SYS_SETFSUID, uid)\n", ""}}, "fsuser", "TestFilesAreTheUsers", "cannot touch files as uid"},
		{"shells need no watches", []edit{{"sandbox/inotify/inotify.go", "if errors.Is(failed, unix.ENOSPC) {", "if false {"}}, "namespace", "TestShellsWithoutWatches", "no space left"},
		{"a script without a watch must have been read", []edit{{frame, "return err != nil || stat.Atim.Sec != 0", "return err == nil"}}, "frames", "TestItIsSeenWithoutAWatch", "it was not opened"},
		{"a dear look is given up", []edit{{"sandbox/prompt/look.go", "used()-l.began > dear", "false"}}, "prompt", "TestAHostileProgram", "a look took"},
		{"dear looks are seldom", []edit{{"sandbox/prompt/turns.go", "idle * (used() - begin)", "0 * (used() - begin)"}}, "prompt", "TestLooksThatTakeLong", "was followed by one"},
		{"one set of epoll is listed at a time", []edit{{"sandbox/prompt/sets.go", "if !epolls.TryLock() {", "if false {"}, {"sandbox/prompt/sets.go", "	defer epolls.Unlock()\n", ""}}, "prompt", "TestOneEpoll", "FAIL"},
		{"what a trap for EXIT writes is not lost", []edit{{"sandbox/frames/lines.go", `"{ "+script+"; }"+fr.redirection(asides)`, "script+fr.redirection(asides)[:0]"}}, "namespace", suite + "an_EXIT_trap", "bye"},
		{"no link is followed in a box", []edit{{"sandbox/supervisor/inside.go", "| unix.O_NOFOLLOW", ""}, {"sandbox/supervisor/inside.go", " | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS", ""}}, "supervisor", "TestNoLinkIsFollowed", "link: got"},
		{"a box that is gone has no pid", []edit{{"sandbox/supervisor/inside.go", "if err := b.init.Signal(syscall.Signal(0)); err != nil {", "if b.init.Signal(syscall.Signal(0)); false {"}}, "supervisor", "TestThePidOfABox", "FAIL"},
		{"a master of a terminal is one", []edit{{terminal, "err != nil || system.Type != devpts {", "err != nil && false {"}, {terminal, "return unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSPTLCK, 0)", "return nil"}}, "supervisor", "TestOnlyAMaster", "is taken for one"},
		{"files are touched without the service's groups", []edit{{"sandbox/fsuser/fsuser.go", "	if err := setGroups(nil); err != nil {\n		return err\n	}\n", ""}}, "fsuser", "TestFilesAreTheUsers", "got the groups"},
		{"the service has its groups again", []edit{{"sandbox/fsuser/fsuser.go", "	return setGroups(own())\n", "	return nil\n"}}, "fsuser", "TestTheServiceHasItsGroups", "has others"},
		{"a kill keeps bash from going on", []edit{{"sandbox/boxinit/fresh.go", "	if request.Interrupt {\n", "	if false {\n"}}, "namespace", suite + "killed/A58_a_child", "went_on|went on"},
	}
}

func limitMutations() []mutation {
	const bounds = "TestBounds$"
	line := func(resource string) edit {
		value := map[string]string{"CORE": "0", "NOFILE": "maxOpenFiles"}[resource]
		return edit{limits, "\t\t{Resource: unix.RLIMIT_" + resource + ", Value: " + value + "},\n", ""}
	}
	return []mutation{
		{"RLIMIT_CORE", []edit{line("CORE")}, "namespace", "Conformance/attacks/dumpable-core", "dumpable-core"},
		{"RLIMIT_NOFILE", []edit{line("NOFILE")}, "namespace", "Conformance/holds/resource", "resource_limits"},
		// Another value, since the kernel's default is ours, and may not be raised.
		{"RLIMIT_MEMLOCK", []edit{{limits, "Value: maxLocked}", "Value: maxLocked / 2}"}}, "namespace", "Conformance/holds/resource", "resource_limits"},
		{"RLIMIT_NPROC", []edit{{limits, "			add(unix.RLIMIT_NPROC, n)\n", ""}}, "namespace", "Conformance/holds/a_limit", "a_limit_of_processes"},
		{"RLIMIT_FSIZE", []edit{{limits, "		add(unix.RLIMIT_FSIZE, l.FileBytes)\n", ""}}, "namespace", bounds + "/files", "files_have_a_longest"},
		{"the limits are set", []edit{{reaper, "for i := range p.limits {", "for i := range p.limits[:0] {"}}, "namespace", "Conformance/holds/resource", "resource_limits"},
		{"the leader joins its cgroup", []edit{{reaper, "	enterGroups(p)\n", ""}}, "namespace", bounds + "/D12_memory", "D12_memory"},
		{"the memory of a cgroup", []edit{{hierarchy, `"memory.limit_in_bytes", bytes`, `"memory.limit_in_bytes", "-1"`}}, "namespace", bounds + "/D12_memory", "D12_memory"},
		{"the sockets of a cgroup", []edit{{hierarchy, `number(socketBytes(l.MemoryBytes), "-1")`, `"-1"`}}, "namespace", "TestD12WhatSockets", "its sockets hold"},
		{"boxes go first", []edit{{launcher, "	offer(process.Pid)\n", ""}}, "namespace", "Conformance/holds", "goes_first"},
		{"the processes of a cgroup", []edit{{hierarchy, `settings = append(settings, setting{"pids.max", number(int64(l.Processes), "max"), false})`, ""}}, "namespace", bounds + "/D12_a_fork", "D12_a_fork"},
		{"the cpu of a cgroup", []edit{{hierarchy, "if l.CPUPercent > 0 {", "if false {"}}, "namespace", bounds + "/cpu", "5% are allowed"},
		{"accounts have equal shares of the processors", []edit{{"sandbox/cgroup/account.go", "	a := p.accounts[key]\n", "	key = \"\"\n	a := p.accounts[key]\n"}}, "cgroup", "TestAnAccountWithManyBusyBoxes", "one of another"},
		{"want of memory is told", []edit{{"sandbox/supervisor/status.go", "r.OutOfMemory = used.OutOfMemory", "r.OutOfMemory = false"}}, "namespace", bounds + "/D12_memory", "D12_memory"},
	}
}
