// Package settings asks settings-api how long each person's shells and
// environments may be idle. It implements core.Lifetimes.
//
// Its one rule is that nothing is ended sooner because settings-api cannot be
// asked: what it said last holds, over restarts too, and where it never said
// anything, nothing is to end for being idle, save an environment with a time of its
// own, which core holds without asking. An answer that cannot be read
// counts as none. It bounds what is asked for by nothing but reason: the
// bounds of the deployment are core's.
//
// What it does not protect: whoever answers at the address can have
// environments archived as soon as those bounds allow.
package settings
