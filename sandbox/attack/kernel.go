package attack

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// sysctls are settings of the kernel's that would lead out, or change the machine
// for everybody.
var sysctls = []string{
	"/proc/sys/kernel/core_pattern",
	"/proc/sys/kernel/modprobe",
	"/proc/sys/kernel/hotplug",
	"/proc/sys/kernel/hostname",
	"/proc/sys/kernel/domainname",
	"/proc/sys/kernel/shmmax",
	"/proc/sys/kernel/msgmax",
	"/proc/sys/fs/mqueue/queues_max",
	"/proc/sys/fs/binfmt_misc/register",
	"/proc/sys/net/ipv4/ip_forward",
	"/proc/sys/user/max_user_namespaces",
	"/proc/sys/vm/overcommit_memory",
	"/proc/sys/vm/panic_on_oom",
	"/proc/sys/kernel/sysrq",
	"/proc/sysrq-trigger",
}

// kernelRows are attacks on the kernel's configuration.
func kernelRows() []Row {
	var rows []Row
	for _, path := range sysctls {
		rows = append(rows, Row{
			ID: "sysctl-" + filepath.Base(path), Stands: "D8, CVE-2022-0811, CVE-2025-52881", Tries: "to write " + path,
			Expect: Expect{"refused EACCES | refused ENOENT | refused EPERM", "refused EACCES | refused ENOENT | refused EPERM", "refused EACCES | refused ENOENT | refused EPERM", 0},
			run:    func(*Targets) string { return open(path, unix.O_WRONLY) },
		})
	}
	return append(rows, controlFileRows()...)
}

func controlFileRows() []Row {
	const refusedHow = "refused EPERM | refused EINVAL | refused ENOENT | refused EACCES"
	noSys := Expect{"refused EACCES", "refused EACCES", "refused ENOENT", 1}
	noFile := Expect{"refused EACCES | refused ENOENT", "refused EACCES | refused ENOENT", "refused EACCES | refused ENOENT", 0}
	return []Row{
		{ID: "sys", Stands: "D8", Tries: "to list /sys", Expect: noSys, run: func(*Targets) string { return open("/sys", unix.O_RDONLY|unix.O_DIRECTORY) }},
		{ID: "sys-uevent", Stands: "D8, uevent_helper", Tries: "to have the kernel start a program for an event", Expect: noFile, run: func(*Targets) string { return open("/sys/kernel/uevent_helper", unix.O_WRONLY) }},
		{ID: "sys-firmware", Stands: "D8", Tries: "to write the firmware's variables", Expect: noFile, run: func(*Targets) string { return open("/sys/firmware/efi/efivars", unix.O_RDONLY) }},
		{ID: "sys-debug", Stands: "D8", Tries: "to reach debugfs and tracefs", Expect: noFile, run: func(*Targets) string { return open("/sys/kernel/debug/tracing/kprobe_events", unix.O_WRONLY) }},
		{ID: "cgroup-procs", Stands: "D8, D12", Tries: "to leave its cgroup", Expect: everywhere(allRefused), run: leaveCgroup},
		{ID: "cgroup-release", Stands: "D8, CVE-2022-0492", Tries: "to set a release_agent", Expect: everywhere(allRefused), run: func(*Targets) string { return onCgroups("release_agent") }},
		{ID: "cgroup-limit", Stands: "D8, D12", Tries: "to raise its memory limit", Expect: everywhere(allRefused), run: func(*Targets) string { return onCgroups("memory.limit_in_bytes") }},
		{ID: "kcore", Stands: "D8", Tries: "to read the machine's memory by /proc/kcore", Expect: noFile, run: func(*Targets) string { return open("/proc/kcore", unix.O_RDONLY) }},
		{ID: "kallsyms", Stands: "D8", Tries: "to read the kernel's addresses", Expect: everywhere("harmless: they are hidden"), run: readAddresses},
		{ID: "proc-fs", Stands: "D8", Tries: "to write to the drivers' files in /proc", Expect: everywhere(allRefused), run: func(*Targets) string {
			return all(open("/proc/acpi/wakeup", unix.O_WRONLY), open("/proc/mtrr", unix.O_WRONLY), open("/proc/scsi/scsi", unix.O_WRONLY), open("/proc/bus/pci/00", unix.O_WRONLY))
		}},
		{ID: "loginuid", Stands: "D8", Tries: "to set its login uid", Expect: Expect{refusedHow, refusedHow, refusedHow, 1}, run: func(*Targets) string { return write("/proc/self/loginuid", "0") }},
		{ID: "oom-score", Stands: "D12", Tries: "to be spared when memory runs out", Expect: everywhere("refused EACCES"), run: func(*Targets) string { return write("/proc/self/oom_score_adj", "-1000") }},
	}
}

// hierarchies are where cgroups are mounted.
var hierarchies = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids"}

func leaveCgroup(*Targets) string { return onCgroups("cgroup.procs") }

func onCgroups(file string) string {
	var verdicts []string
	for _, dir := range hierarchies {
		verdicts = append(verdicts, open(dir+"/"+file, unix.O_WRONLY))
	}
	return all(verdicts...)
}

func readAddresses(*Targets) string {
	data, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		return harmless("they are hidden")
	}
	for i := 0; i+16 < len(data) && i < 1<<16; i++ {
		if i == 0 || data[i-1] == '\n' {
			if string(data[i:i+16]) != "0000000000000000" {
				return escaped("there is %s", data[i:i+16])
			}
		}
	}
	return harmless("they are hidden")
}
