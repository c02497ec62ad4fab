// Package mutation proves that the suites would notice a control that is off: it
// takes one control after the other out of the source, builds what that changes
// (go build -overlay; the checkout stays as it is), and runs the tests that must
// fail by it.
//
// It runs as root, since that is who can have every tier: the directory tier's
// tests drop to an ordinary user. The broken boxes are kept in mount, IPC and host
// name namespaces of their own, for what they might do to the machine.
//
// Not proved: the single lines of the system call filter, which package seccomp
// proves by itself, and controls of which this table has no row.
package mutation
