package seccomp

// allowed are the calls that programs make. What a rule above has not refused by
// its arguments is allowed here.
var allowed = []rule{
	{calls: "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek close close_range", verdict: allow, reason: "input and output"},
	{calls: "open openat openat2 creat access faccessat faccessat2 stat fstat lstat newfstatat fstatat statx statfs fstatfs readlink readlinkat getdents getdents64 getcwd chdir fchdir umask", verdict: allow, reason: "files by path, which the file tree and Landlock bound"},
	{calls: "mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat mknod mknodat truncate ftruncate fallocate", verdict: allow, reason: "the same; device nodes need a capability"},
	{calls: "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes utimensat futimesat", verdict: allow, reason: "attributes of own files; another owner needs a capability"},
	{calls: "setxattr lsetxattr fsetxattr setxattrat getxattr lgetxattr fgetxattr getxattrat listxattr llistxattr flistxattr listxattrat removexattr lremovexattr fremovexattr removexattrat", verdict: allow, reason: "the same; those that mean something to the kernel need a capability"},
	{calls: "dup dup2 dup3 fcntl ioctl flock pipe pipe2 sendfile splice tee vmsplice copy_file_range", verdict: allow, reason: "descriptors"},
	{calls: "sync syncfs fsync fdatasync sync_file_range readahead fadvise64 cachestat", verdict: allow, reason: "durability and caches"},
	{calls: "select pselect6 poll ppoll epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2 signalfd signalfd4 inotify_init inotify_init1 inotify_add_watch inotify_rm_watch", verdict: allow, reason: "waiting"},

	{calls: "mmap munmap mremap mprotect madvise msync mincore brk mlock mlock2 munlock mlockall munlockall remap_file_pages memfd_create mseal map_shadow_stack pkey_alloc pkey_free pkey_mprotect membarrier", verdict: allow, reason: "own memory"},
	{calls: "shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl", verdict: allow, reason: "System V IPC, in an ipc namespace of the box's own"},
	{calls: "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr", verdict: allow, reason: "message queues, the same"},

	{calls: "clone fork vfork execve execveat exit exit_group wait4 waitid set_tid_address set_robust_list get_robust_list rseq futex futex_waitv futex_wait futex_wake futex_requeue arch_prctl prctl personality restart_syscall", verdict: allow, reason: "processes and threads"},
	{calls: "kill tkill tgkill rt_sigaction rt_sigprocmask rt_sigpending rt_sigsuspend rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo rt_sigreturn sigaltstack pause pidfd_open pidfd_send_signal process_mrelease", verdict: allow, reason: "signals, which the pid namespace or Landlock bounds"},
	{calls: "ptrace", verdict: allow, reason: "debuggers; the filter is asked after a tracer has changed a call (Linux 4.8)"},
	{calls: "getpid getppid gettid getpgid getpgrp getsid setpgid setsid getuid geteuid getgid getegid getresuid getresgid getgroups", verdict: allow, reason: "who one is"},
	{calls: "setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capget capset", verdict: allow, reason: "programs give up what they do not have; more than that needs a capability"},
	{calls: "sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_setparam sched_getscheduler sched_setscheduler sched_getattr sched_setattr sched_get_priority_max sched_get_priority_min sched_rr_get_interval getpriority setpriority ioprio_get ioprio_set", verdict: allow, reason: "own scheduling; a better one needs a capability"},
	{calls: "getrlimit setrlimit prlimit64 getrusage times sysinfo uname getcpu", verdict: allow, reason: "own limits, which can only sink, and usage"},

	{calls: "time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep alarm getitimer setitimer timer_create timer_delete timer_settime timer_gettime timer_getoverrun timerfd_create timerfd_settime timerfd_gettime", verdict: allow, reason: "time"},
	{calls: "adjtimex clock_adjtime", verdict: allow, reason: "asking how well the clock is set; to set it needs a capability of the host's"},
	{calls: "getrandom", verdict: allow, reason: "random numbers"},

	{calls: "socket socketpair bind connect listen accept accept4 getsockname getpeername getsockopt setsockopt shutdown sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg", verdict: allow, reason: "sockets of the families, types and protocols that are left"},
	{calls: "seccomp", verdict: allow, reason: "can only tighten: the strictest of all filters wins, over one that asks another process too"},
	{calls: "landlock_create_ruleset landlock_add_rule landlock_restrict_self", verdict: allow, reason: "can only tighten"},
	{calls: "uretprobe", verdict: allow, reason: "the kernel puts it into programs that the host's operator watches; without it they die"},
}
