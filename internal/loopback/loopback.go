// Package loopback says which hosts are this machine and nobody else's, for
// settings that may do without TLS there and for requests that come in there.
//
// Not protected: it goes by the name alone. That localhost resolves to a
// loopback address is up to the host's own resolver; whoever must be sure looks
// at the address of the open socket.
package loopback

import "net/netip"

// Is says whether a host, a name or an address without a port and brackets, is
// on this machine: a loopback address, or localhost.
func Is(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
