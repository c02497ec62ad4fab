// Package keyring verifies the tokens of callers against the public keys of
// keyring, the service that signs them.
//
// It accepts less than the standards allow: signed tokens in compact form of at
// most 8 KiB, of a known type, with a known asymmetric algorithm that is the
// key's own, with every claim that decides about access present and of one
// plain form. What a token says is read by the strict reader of this package
// from exactly the bytes whose signature was verified.
//
// What it does not protect against: a token that was stolen works until it
// expires, since none is bound to its bearer or can be called back; a key that
// keyring takes out of its set is trusted until the next fetch of the set (five
// minutes, or up to Config.Stale while keyring cannot be reached); the set is as
// trustworthy as the connection to keyring, which is why only loopback may go
// without TLS.
package keyring
