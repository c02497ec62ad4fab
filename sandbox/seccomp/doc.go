// Package seccomp says which system calls a command may make, and compiles
// that into the filter which the init of every box installs (seccomp(2)).
//
// The policy is a list of rules with a reason for each (refused.go,
// conditional.go, allowed.go). The first rule of a call whose tests hold
// decides:
//
//   - what is allowed is made;
//   - what is refused by name fails, mostly with EPERM, so that a program and
//     its user learn that it is forbidden and not missing;
//   - what is not named fails with ENOSYS, as on a kernel that does not have it,
//     so that libc falls back. New kernels' calls are among them, clone3 (its
//     flags lie behind a pointer, which no filter can read), the old io_setup
//     family (its contexts are counted for the whole machine), memfd_secret,
//     and statmount and listmount;
//   - a call by another architecture's table (int 0x80, x32) kills the process,
//     since its numbers mean something else.
//
// Arguments are compared by their low 32 bits: the kernel takes all those that
// are tested here as 32 bits or less, so high bits change nothing.
//
// The filters for x86-64 and for arm64 are made of the same list. That of arm64
// is evaluated by an interpreter in the tests; it was never run by a kernel.
//
// This package is the supervisor's. The init only installs what it is sent, so
// that it stays small: sandbox/boxinit/filter.go.
//
// Not protected: what lies behind a pointer (paths, socket addresses, the
// options of a socket), and bugs in the calls that are allowed.
package seccomp
