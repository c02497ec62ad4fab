package seccomp

import "golang.org/x/sys/unix"

// What package unix has no names for.
const (
	tiocLinux      = 0x541c     // TIOCLINUX, ioctl_console(2)
	ioctlSetFlags  = 0x40086602 // FS_IOC_SETFLAGS, ioctl_iflags(2)
	ioctlFsSetAttr = 0x401c5820 // FS_IOC_FSSETXATTR

	perLinux32 = 8       // PER_LINUX32, personality(2)
	perUname26 = 0x20000 // UNAME26

	prioUser   = 2 // PRIO_USER, setpriority(2)
	ioprioUser = 3 // IOPRIO_WHO_USER, ioprio_set(2)

	socketType = 0xf // SOCK_TYPE_MASK: the rest of the argument are flags

	// newNamespaces are the flags of clone(2) that make one. CLONE_NEWTIME is
	// none of them: its bit is part of the exit signal there.
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
)

// Where a rule is only for some boxes.
var (
	hostNamespaces = Shares{Namespaces: true}
	hostUID        = Shares{UID: true}
)

// conditional are the refusals that depend on arguments, or on what a box
// shares. What none of them refuses is allowed further down.
var conditional = []rule{
	{calls: "clone", when: []test{has(0, newNamespaces)}, verdict: refuse, reason: "in a user namespace of its own a program has every capability"},

	{calls: "ioctl", when: []test{is(1, unix.TIOCSTI)}, verdict: refuse, reason: "puts words into another's terminal"},
	{calls: "ioctl", when: []test{is(1, tiocLinux)}, verdict: refuse, reason: "the same, by the console's selection"},
	{calls: "ioctl", when: []test{is(1, unix.TIOCSETD)}, verdict: refuse, reason: "loads line disciplines, drivers of modems that nobody has looked at for years"},
	{calls: "ioctl", when: []test{is(1, ioctlFsSetAttr)}, verdict: refuse, reason: "a file's project is what its disk quota is counted by"},
	{calls: "ioctl", when: []test{is(1, ioctlSetFlags)}, verdict: refuse, reason: "the same: whether new files inherit the project"},
	{calls: "ioctl", when: []test{is(1, unix.FS_IOC_SET_ENCRYPTION_POLICY)}, verdict: refuse, reason: "what is in an encrypted folder whose key was taken away cannot be moved, and so not be deleted when it is deep"},
	{calls: "ioctl", when: []test{is(1, unix.FS_IOC_ADD_ENCRYPTION_KEY)}, verdict: refuse, reason: "a file system's keys, which like keyrings belong to uids"},
	{calls: "fcntl", when: []test{is(1, unix.F_SETLEASE)}, verdict: refuse, reason: "holds up whoever opens the file, the service too"},
	{calls: "fcntl", when: []test{is(1, unix.F_SETDELEG)}, verdict: refuse, reason: "the same, for directories"},

	{calls: "ptrace", when: []test{is(0, unix.PTRACE_ATTACH)}, verdict: refuse, reason: "debuggers trace what they start (PTRACE_TRACEME), nothing else"},
	{calls: "ptrace", when: []test{is(0, unix.PTRACE_SEIZE)}, verdict: refuse, reason: "the same"},
	{calls: "prctl", when: []test{is(0, unix.PR_SET_MM)}, verdict: refuse, reason: "lies about where a program's parts are, for checkpoints only"},
	{calls: "prlimit64", when: []test{isNot(0, 0)}, verdict: refuse, reason: "an equal uid suffices to limit another process, the init or the service, to nothing"},
	{calls: "mmap", when: []test{has(3, unix.MAP_HUGETLB)}, verdict: refuse, reason: "huge pages are set aside for the host's own programs, and no limit of memory counts them"},
	{calls: "memfd_create", when: []test{has(1, unix.MFD_HUGETLB)}, verdict: refuse, reason: "the same"},
	{calls: "personality", when: []test{isNot(0, 0, perLinux32, perUname26, perUname26|perLinux32, allBits)}, verdict: refuse, reason: "other personalities turn protections off; these change what uname says, the last only asks"},

	{calls: "socket", only: hostNamespaces, verdict: refuse, reason: "the network is the host's, and so are the sockets that have paths"},
	{calls: "connect", only: hostNamespaces, verdict: refuse, reason: "the same, for what was no socket(2)"},
	{calls: "socketpair", only: hostNamespaces, when: []test{isNot(1, unix.SOCK_STREAM, unix.SOCK_SEQPACKET).masked(socketType)}, verdict: refuse, reason: "one of a pair of datagram sockets can still send to any path"},
	{calls: "socketpair", when: []test{isNot(0, unix.AF_UNIX)}, verdict: noSuchFamily, reason: "the other family that has pairs is TIPC"},
	{calls: "socket", when: []test{isNot(0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)}, verdict: noSuchFamily, reason: "VSOCK, ALG, PACKET and fifty more: reach past namespaces, load modules, or are seldom looked at"},
	{calls: "socket", when: []test{is(0, unix.AF_INET, unix.AF_INET6), isNot(1, unix.SOCK_STREAM, unix.SOCK_DGRAM).masked(socketType)}, verdict: refuse, reason: "raw packets, DCCP, SCTP"},
	{calls: "socket", when: []test{is(0, unix.AF_INET, unix.AF_INET6), isNot(2, 0, unix.IPPROTO_TCP, unix.IPPROTO_UDP)}, verdict: noSuchProtocol, reason: "ICMP, multipath TCP (which Landlock's TCP rules do not know), SCTP, SMC, UDP-Lite"},
	{calls: "socket", when: []test{is(0, unix.AF_NETLINK), isNot(2, unix.NETLINK_ROUTE)}, verdict: noSuchProtocol, reason: "libc asks for addresses by NETLINK_ROUTE; netfilter, crypto and the rest are how namespaced root attacks the kernel"},
	{calls: "setsockopt", when: []test{is(1, unix.IPPROTO_TCP), is(2, unix.TCP_ULP)}, verdict: refuse, reason: "turns TCP into another protocol (TLS in the kernel and others), loading its module"},

	{calls: "sendto sendmmsg", when: []test{has(3, unix.MSG_OOB)}, verdict: refuse, reason: "urgent data on unix sockets was a way out of Chrome's sandbox (CVE-2025-38236); telnet and ftp alone use it"},
	{calls: "sendmsg", when: []test{has(2, unix.MSG_OOB)}, verdict: refuse, reason: "the same"},

	{calls: "shmget shmat shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl", only: hostNamespaces, verdict: refuse, reason: "the host's System V IPC, and other boxes'"},
	{calls: "mq_open mq_unlink", only: hostNamespaces, verdict: refuse, reason: "the host's message queues, and other boxes'"},

	{calls: "sched_setaffinity sched_setscheduler sched_setparam sched_setattr", only: hostUID, when: []test{isNot(0, 0)}, verdict: refuse, reason: "an equal uid suffices to starve another process, the service too"},
	{calls: "setpriority", only: hostUID, when: []test{is(0, prioUser)}, verdict: refuse, reason: "the same, for all processes of the uid"},
	{calls: "setpriority", only: hostUID, when: []test{isNot(1, 0)}, verdict: refuse, reason: "the same, for one process or group"},
	{calls: "ioprio_set", only: hostUID, when: []test{is(0, ioprioUser)}, verdict: refuse, reason: "the same, for the disk"},
	{calls: "ioprio_set", only: hostUID, when: []test{isNot(1, 0)}, verdict: refuse, reason: "the same, for one process or group"},
}
