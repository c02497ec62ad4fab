package seccomp

// refused are the calls that no command may make, whatever their arguments.
// Most of them need a capability that no command has; they are refused here too,
// since each has been the way into a kernel by one mistake or another.
var refused = []rule{
	{calls: "unshare setns", verdict: refuse, reason: "in a user namespace of its own a program has every capability"},
	{calls: "mount umount2 pivot_root chroot", verdict: refuse, reason: "the file tree is made by the init alone"},
	{calls: "open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr", verdict: refuse, reason: "the same, by descriptors"},
	{calls: "open_by_handle_at name_to_handle_at", verdict: refuse, reason: "files by number, past every path"},
	{calls: "swapon swapoff quotactl quotactl_fd acct", verdict: refuse, reason: "the host's disks"},
	{calls: "fanotify_init fanotify_mark", verdict: refuse, reason: "events of whole file systems, and holding up who opens files"},

	{calls: "io_uring_setup io_uring_enter io_uring_register", verdict: refuse, reason: "does other calls' work past this filter; most kernel exploits of its years went through it"},
	{calls: "bpf perf_event_open", verdict: refuse, reason: "code in the kernel, and a view of others' execution"},
	{calls: "userfaultfd", verdict: refuse, reason: "stops the kernel in the middle of a copy, which is half of many exploits"},
	{calls: "add_key request_key keyctl", verdict: refuse, reason: "keyrings belong to uids, not to boxes"},
	{calls: "process_vm_readv process_vm_writev process_madvise", verdict: refuse, reason: "the memory of other processes"},
	{calls: "kcmp pidfd_getfd", verdict: refuse, reason: "the descriptors and kernel objects of other processes"},
	{calls: "mbind set_mempolicy get_mempolicy set_mempolicy_home_node migrate_pages move_pages", verdict: refuse, reason: "where memory lies on the host, of other processes too"},

	{calls: "init_module finit_module delete_module", verdict: refuse, reason: "code in the kernel"},
	{calls: "kexec_load kexec_file_load reboot", verdict: refuse, reason: "another kernel, or none"},
	{calls: "settimeofday clock_settime", verdict: refuse, reason: "the host's clock"},
	{calls: "sethostname setdomainname", verdict: refuse, reason: "named once, by the init; in the directory tier it is the host's"},
	{calls: "syslog", verdict: refuse, reason: "the host kernel's messages hold addresses"},
	{calls: "vhangup", verdict: refuse, reason: "a terminal taken from others"},
	{calls: "lookup_dcookie nfsservctl", verdict: refuse, reason: "interfaces for profilers and servers that are gone from newer kernels"},
	{calls: "ioperm iopl modify_ldt", verdict: refuse, reason: "the machine's ports, and descriptor tables that only 16-bit programs need"},
}
