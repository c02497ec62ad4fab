package attack

import "golang.org/x/sys/unix"

// extraCalls are calls that only this architecture has.
func extraCalls() []plain {
	return []plain{
		{"ioperm", "D6", "to reach the ports of devices", unix.SYS_IOPERM, [6]uintptr{0x80, 1, 1}, ""},
		{"iopl", "D6", "to reach the ports of all devices", unix.SYS_IOPL, [6]uintptr{3}, ""},
		{"modify_ldt", "D6, CVE-2015-3290, CVE-2017-17053", "to write a segment of one's own", unix.SYS_MODIFY_LDT, [6]uintptr{0, address(0), 16}, ""},
		{"uselib", "D6, CVE-2004-1235", "to map a library the old way", unix.SYS_USELIB, [6]uintptr{text("/nonexistent")}, "ENOSYS"},
		{"sysfs", "D6", "to list the kernel's file systems the old way", unix.SYS_SYSFS, [6]uintptr{3}, "ENOSYS"},
		{"create_module", "D6", "to use a call that has long been removed", unix.SYS_CREATE_MODULE, [6]uintptr{}, "ENOSYS"},
	}
}
