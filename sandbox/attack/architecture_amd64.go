package attack

import (
	"os"
	"strings"
	"syscall"
	"unsafe"
)

// int80 makes a system call of the 32-bit architecture, which a 64-bit process
// can make too; what it returns, an errno is negative.
//
//go:noescape
func int80(number uintptr) int32

const (
	getpid32 = 20         // getpid(2) by the numbers of i386
	x32Bit   = 0x40000000 // __X32_SYSCALL_BIT
)

// architectureRows are attacks by another architecture's system calls, whose
// numbers mean something else to a filter that does not look. A kernel without
// that architecture (ia32_emulation=off, or a guest of a hypervisor without it)
// faults at its way in, and does not know its programs.
func architectureRows() []Row {
	return []Row{
		{
			ID: "int80", Stands: "D6", Tries: "to make a 32-bit system call from a 64-bit program",
			Expect: everywhere("killed SIGSYS | killed SIGSEGV"), run: tryInt80,
		},
		{
			ID: "x32", Stands: "D6", Tries: "to make an x32 system call, by a bit in the number",
			Expect: everywhere("killed SIGSYS"), run: tryX32,
		},
		{
			ID: "i386", Stands: "D6", Tries: "to execute a 32-bit program",
			Expect: everywhere("killed SIGSYS | refused ENOEXEC"), run: tryI386,
		},
	}
}

// asBegun is the sigaction of a signal that nobody handles.
var asBegun [4]uintptr

// tryInt80 has the child die of a fault: in it, the Go runtime's handler would
// wait for threads that are not there.
func tryInt80(*Targets) string {
	unhandle := call{number: syscall.SYS_RT_SIGACTION, args: [6]uintptr{
		uintptr(syscall.SIGSEGV), uintptr(unsafe.Pointer(&asBegun)), 0, unsafe.Sizeof(uint64(0)),
	}}
	return calls{unhandle, {number: getpid32, legacy: true}}.verdict("the kernel took it")
}

func tryX32(*Targets) string {
	return calls{{number: x32Bit | uintptr(syscall.SYS_GETPID)}}.verdict("the kernel took it")
}

// tryI386 executes the smallest program of that architecture: it exits with 0.
func tryI386(*Targets) string {
	path := "i386-program"
	if err := os.WriteFile(path, i386Program(), 0o700); err != nil { //nolint:gosec // a program
		return refused(err)
	}
	defer remove(path)
	p, err := os.StartProcess(path, []string{path}, &os.ProcAttr{})
	if err != nil {
		return refused(err)
	}
	state, err := p.Wait()
	if err != nil {
		return refused(err)
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return death(status.Signal()).Error()
	}
	return tried(nil, "it ran: "+state.String())
}

// i386Program is an ELF file: its header, the header of its one segment, and
// exit(0).
func i386Program() []byte {
	const header = "\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00" + // 32 bits, little-endian
		"\x02\x00\x03\x00\x01\x00\x00\x00\x54\x80\x04\x08\x34\x00\x00\x00" + // executable, i386, entry 0x8048054
		"\x00\x00\x00\x00\x00\x00\x00\x00\x34\x00\x20\x00\x01\x00\x00\x00" +
		"\x00\x00\x00\x00" +
		"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x80\x04\x08\x00\x80\x04\x08" + // load all of it at 0x8048000
		"\x5d\x00\x00\x00\x5d\x00\x00\x00\x05\x00\x00\x00\x00\x10\x00\x00"
	const code = "\x31\xdb" + // xor ebx, ebx
		"\xb8\x01\x00\x00\x00" + // mov eax, 1 (exit)
		"\xcd\x80" // int 0x80
	return []byte(strings.Join([]string{header, code}, ""))
}
