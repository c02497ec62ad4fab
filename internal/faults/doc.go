// Package faults names the steps of what the service does, and in a build for tests, with
// the tag "faults", kills the process or fails at one that a test chose. In every other
// build it is empty: no setting, no file and no caller can reach it.
//
// A build with the tag asks, at each step, the file that the environment variable
// FAULTS_FILE names. Where there is none, nothing happens. Its one line is one of
//
//	trace            the name of each step is appended to FAULTS_FILE.trace, one a line
//	kill N NAME      at the N-th step of just this name the process kills itself (SIGKILL)
//	kill N           likewise, at the N-th step of any name
//	once N NAME      the N-th step of just this name fails with EIO
//	fail PREFIX N    each N-th step whose name begins with PREFIX fails with EIO; 1: all
//
// Steps are counted from when a line was first seen; another line, or none, begins anew.
// The file must be put in place by rename, so that no half of it is read.
//
// A name is "step" or "step of", for example "store.commit create the environment". The
// steps of the store are store.begin, store.commit (before it) and store.committed, which
// never fails; those of folders begin with "workspace.", those of files with "files.",
// those of output with "logs.".
package faults
