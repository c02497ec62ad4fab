package boxinit

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"envapi/sandbox/protocol"
)

// A hostile program can have any number of sockets and descriptors. What is beyond
// these bounds is not shown.
const (
	maxTable    = 1 << 20 // bytes of each of the kernel's tables; those that listen come first in TCP's
	maxSockets  = 4096    // that listen
	maxOpen     = 4096    // descriptors of one process
	maxOpenAll  = 1 << 16 // of all together
	namesAtOnce = 512
)

// sockets are those that listen in the box's network.
type sockets struct {
	server  *server
	byInode map[string]protocol.Listen
	left    int // descriptors to look at
	shown   int // listeners that were found
}

// listeners gives what listens in the box's own network. Where the network is the
// host's a box has no socket that does.
func (s *server) listeners() *sockets {
	found := &sockets{server: s, byInode: map[string]protocol.Listen{}, left: maxOpenAll}
	if !s.setup.Namespaces {
		return found
	}
	for _, name := range protocol.ListenProtocols {
		table, _ := patiently(s, func() []byte { return readTable("/proc/self/net/" + name) })
		for line := range bytes.Lines(table) {
			inode, at, ok := parseSocket(name, line)
			if ok && len(found.byInode) < maxSockets {
				found.byInode["socket:["+inode+"]"] = protocol.Listen{Protocol: name, At: at}
			}
		}
	}
	return found
}

// readTable reads the beginning of a table, whole lines of it.
func readTable(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil // without IPv6 there is none of it
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxTable))
	if err != nil {
		return nil
	}
	return content[:bytes.LastIndexByte(content, '\n')+1]
}

// The states of a socket in those tables (net/tcp_states.h), and the places of what
// is read.
const (
	tcpListens   = "0A"
	unconnected  = "07" // of UDP
	localField   = 1
	remoteField  = 2
	stateOfField = 3
	inodeField   = 9
)

// parseSocket reads a line of /proc/net/tcp and its like (proc(5)), and says whether
// it is of a socket that listens.
func parseSocket(name string, line []byte) (inode string, at netip.AddrPort, ok bool) {
	fields := strings.Fields(string(line))
	if len(fields) <= inodeField {
		return "", at, false
	}
	listens := tcpListens
	if strings.HasPrefix(name, "udp") {
		listens = unconnected
	}
	at, ok = parseAddress(fields[localField])
	remote, remoteOK := parseAddress(fields[remoteField])
	if !ok || !remoteOK || fields[stateOfField] != listens || at.Port() == 0 || remote.Port() != 0 {
		return "", at, false
	}
	if n, err := strconv.ParseUint(fields[inodeField], 10, 64); err != nil || n == 0 {
		return "", at, false
	}
	return fields[inodeField], at, true
}

// parseAddress reads an address as those tables have it: words of four bytes in the
// machine's order, and a port.
func parseAddress(s string) (netip.AddrPort, bool) {
	address, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(address)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(b) != 4 && len(b) != 16 {
		return netip.AddrPort{}, false
	}
	for word := b; len(word) > 0; word = word[4:] {
		binary.BigEndian.PutUint32(word, binary.NativeEndian.Uint32(word))
	}
	ip, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(ip, uint16(n)), true
}

// of gives the ports that a process listens at.
func (s *sockets) of(pid int) []protocol.Listen {
	if len(s.byInode) == 0 || s.left <= 0 || s.shown >= protocol.MaxListeners {
		return nil
	}
	links, _ := patiently(s.server, func() []string { return socketsOf(pid, min(s.left, maxOpen)) })
	var listens []protocol.Listen
	for _, link := range links {
		s.left--
		if l, ok := s.byInode[link]; ok {
			listens = append(listens, l)
		}
	}
	slices.SortFunc(listens, func(a, b protocol.Listen) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), a.At.Compare(b.At))
	})
	listens = slices.Compact(listens) // several sockets can share a port
	listens = listens[:min(len(listens), protocol.MaxListeners-s.shown)]
	s.shown += len(listens)
	return listens
}

// socketsOf gives what the descriptors of a process are, of at most so many.
func socketsOf(pid, most int) (links []string) {
	path := "/proc/" + strconv.Itoa(pid) + "/fd"
	dir, err := os.Open(path)
	if err != nil {
		return nil // it hides them (prctl(2), PR_SET_DUMPABLE)
	}
	defer dir.Close()
	for len(links) < most {
		names, err := dir.Readdirnames(min(namesAtOnce, most-len(links)))
		for _, name := range names {
			link, _ := os.Readlink(path + "/" + name)
			links = append(links, link) // what is none counts as well
		}
		if err != nil && !errors.Is(err, io.EOF) || len(names) == 0 {
			break
		}
	}
	return links
}
