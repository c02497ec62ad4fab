// Package prompt says whether what runs in the foreground of a terminal is blocked
// reading it, so that nobody waits out a prompt.
//
// One look asks the kernel for the terminal's foreground group, finds the group's
// processes below the session's leader, and reads what each of their threads is
// blocked in (/proc/PID/task/TID/syscall): a read of a descriptor that is this
// terminal, or a wait for several descriptors of which it is one. Two looks, 50 ms
// apart, must find the same thread so; what only passes through a read is not taken
// for a prompt.
//
// Everything that is read here is written by programs that may be hostile: numbers
// of threads, children and descriptors, addresses, the sizes of sets. All are
// bounded, a look as a whole by a number of files and by its time, and looks that
// take long are made seldom (Turns).
//
// Where /proc refuses (programs that are not dumpable, in a service that is not
// root; a policy of the host on tracing) only a prompt for a password is seen: the
// terminal gives whole lines and shows nothing that is typed, and the program
// sleeps. Else the answer is then that it is not known.
//
// Not protected: a program can pretend to wait for input, or hide that it does,
// which deceives nobody but who started it. A wait for the terminal and for other
// things at once counts as a wait for input, since nobody else can tell.
package prompt
