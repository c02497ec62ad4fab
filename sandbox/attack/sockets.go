package attack

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// socket is an attack that opens a socket.
type socket struct {
	id, stands, tries      string
	family, kind, protocol int
	expect                 Expect
}

// exotic is what the filter says of families and protocols that no program of a
// box needs.
var exotic = noIP("refused EAFNOSUPPORT")

// noIP is what the tiers without a network of their own say, while an empty
// network answers for itself.
func noIP(inNamespace string) Expect { return Expect{"refused EPERM", "refused EPERM", inNamespace, 0} }

func sockets() []socket {
	return []socket{
		{"vsock", "D6, CVE-2021-26708", "to talk to the hypervisor", unix.AF_VSOCK, unix.SOCK_STREAM, 0, exotic},
		{"alg", "D6, CVE-2019-8912", "to use the kernel's ciphers", unix.AF_ALG, unix.SOCK_SEQPACKET, 0, exotic},
		{"packet", "D6, CVE-2016-8655, CVE-2020-14386", "to send and receive whole frames", unix.AF_PACKET, unix.SOCK_RAW, 0, exotic},
		{"packet-cooked", "D6", "to send and receive whole packets", unix.AF_PACKET, unix.SOCK_DGRAM, 0, exotic},
		{"bluetooth", "D6", "to use Bluetooth", unix.AF_BLUETOOTH, unix.SOCK_RAW, 1, exotic},
		{"xdp", "D6", "to receive past the network's code", unix.AF_XDP, unix.SOCK_RAW, 0, exotic},
		{"tipc", "D6, CVE-2022-0435", "to use TIPC", unix.AF_TIPC, unix.SOCK_SEQPACKET, 0, exotic},
		{"can", "D6, CVE-2021-3609", "to use a CAN bus", unix.AF_CAN, unix.SOCK_RAW, 1, exotic},
		{"rds", "D6, CVE-2010-3904", "to use RDS", unix.AF_RDS, unix.SOCK_SEQPACKET, 0, exotic},
		{"smc", "D6", "to use SMC", unix.AF_SMC, unix.SOCK_STREAM, 0, exotic},
		{"kcm", "D6", "to use KCM", unix.AF_KCM, unix.SOCK_DGRAM, 0, exotic},
		{"qipcrtr", "D6", "to talk to a modem", unix.AF_QIPCRTR, unix.SOCK_DGRAM, 0, exotic},
		{"ax25", "D6", "to use a family with an old and little used driver", unix.AF_AX25, unix.SOCK_DGRAM, 0, exotic},
		{"key", "D6", "to manage IPsec", unix.AF_KEY, unix.SOCK_RAW, 2, exotic},
		{"raw-icmp", "D17", "to open a raw ICMP socket", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, noIP("refused EPERM")},
		{"raw-ip", "D6, D17", "to write IP packets", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW, noIP("refused EPERM")},
		{"raw-ip6", "D6, D17", "to write IPv6 packets", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW, noIP("refused EPERM")},
		{"ping-socket", "D17", "to send an ICMP echo without privileges", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP, noIP("refused EPROTONOSUPPORT")},
		{"mptcp", "D17, Landlock before its ABI for it", "to connect by multipath TCP, which Landlock's TCP rules do not see", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, noIP("refused EPROTONOSUPPORT")},
		{"sctp", "D17, CVE-2019-8956", "to use SCTP", unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP, noIP("refused EPERM")},
		{"dccp", "D17, CVE-2017-6074", "to use DCCP", unix.AF_INET, 6, 33, noIP("refused EPERM")},
		{"udplite", "D17", "to use UDP-Lite", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, noIP("refused EPROTONOSUPPORT")},
		{"netlink-xfrm", "D6", "to manage IPsec by netlink", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_XFRM, noIP("refused EPROTONOSUPPORT")},
		{"netlink-netfilter", "D6, CVE-2022-32250, CVE-2024-1086", "to manage the firewall", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER, noIP("refused EPROTONOSUPPORT")},
		{"netlink-audit", "D6", "to manage the audit log", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT, noIP("refused EPROTONOSUPPORT")},
		{"netlink-uevent", "D6, CVE-2009-1185", "to hear and make the events of devices", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT, noIP("refused EPROTONOSUPPORT")},
		{"netlink-generic", "D6", "to reach the families of generic netlink", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC, noIP("refused EPROTONOSUPPORT")},
	}
}

func socketRows() []Row {
	var rows []Row
	for _, s := range sockets() {
		rows = append(rows, Row{ID: "socket-" + s.id, Stands: s.stands, Tries: s.tries, Expect: s.expect, run: func(*Targets) string {
			fd, err := unix.Socket(s.family, s.kind|unix.SOCK_CLOEXEC, s.protocol)
			if err == nil {
				_ = unix.Close(fd)
			}
			return tried(err, "the socket is open")
		}})
	}
	return append(rows, packetRows()...)
}

// documentation is an address that is nobody's (RFC 5737): where a packet would
// go that got out.
var (
	documentation  = unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}, Port: 53}
	documentation6 = unix.SockaddrInet6{Addr: [16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1}, Port: 53}
)

// packetRows are attacks that send something. In a network that is the host's
// they fail before they send: there the socket itself must be refused.
func packetRows() []Row {
	return []Row{
		{
			ID: "udp", Stands: "D17, DNS", Tries: "to send a datagram to the outside", Expect: noIP("refused ENETUNREACH"),
			run: func(t *Targets) string { return send(t, unix.AF_INET, unix.SOCK_DGRAM, &documentation) },
		},
		{
			ID: "tcp", Stands: "D17", Tries: "to connect to the outside", Expect: noIP("refused ENETUNREACH"),
			run: func(t *Targets) string { return send(t, unix.AF_INET, unix.SOCK_STREAM, &documentation) },
		},
		{
			ID: "udp6", Stands: "D17", Tries: "to send an IPv6 datagram to the outside", Expect: noIP("refused ENETUNREACH"),
			run: func(t *Targets) string { return send(t, unix.AF_INET6, unix.SOCK_DGRAM, &documentation6) },
		},
		{
			ID: "tcp6", Stands: "D17", Tries: "to connect to the outside over IPv6", Expect: noIP("refused ENETUNREACH"),
			run: func(t *Targets) string { return send(t, unix.AF_INET6, unix.SOCK_STREAM, &documentation6) },
		},
		{
			ID: "loopback-tcp", Stands: "D9", Tries: "to connect to a port of the host's loopback", Expect: noIP("refused ECONNREFUSED"),
			run: func(t *Targets) string {
				return reach(unix.AF_INET, unix.SOCK_STREAM, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: t.TCP})
			},
		},
		{
			ID: "loopback-udp", Stands: "D9", Tries: "to send to a port of the host's loopback", Expect: noIP("refused ECONNREFUSED"),
			run: func(t *Targets) string {
				return reach(unix.AF_INET, unix.SOCK_DGRAM, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: t.UDP})
			},
		},
		{
			ID: "interfaces", Stands: "D17", Tries: "to find an interface but loopback", Expect: noIP("harmless: only lo"),
			run: findInterfaces,
		},
	}
}

// send sends to the outside, where the network is not the host's.
func send(t *Targets, family, kind int, to unix.Sockaddr) string {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return refused(err)
	}
	defer unix.Close(fd)
	if own, err := os.Readlink("/proc/self/ns/net"); err != nil || own == t.Network || t.Network == "" {
		return escaped("a socket in the host's network (%s, %v)", own, err)
	}
	if err := unix.Connect(fd, to); err != nil {
		return refused(err)
	}
	_, err = unix.Write(fd, []byte("x"))
	return tried(err, "it was sent")
}

// reach connects to the host's loopback, and says a byte.
func reach(family, kind int, to unix.Sockaddr) string {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return refused(err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil {
		return refused(err)
	}
	if _, err = unix.Write(fd, []byte("x")); err != nil {
		return refused(err)
	}
	// A datagram to a port where nobody is comes back as an error of the next.
	_, err = unix.Write(fd, []byte("x"))
	return tried(err, "the host's port "+strconv.Itoa(portOf(to))+" was reached")
}

func portOf(a unix.Sockaddr) int {
	if in, ok := a.(*unix.SockaddrInet4); ok {
		return in.Port
	}
	return 0
}

func findInterfaces(*Targets) string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return refused(err)
	}
	defer unix.Close(fd)
	for index := uint32(1); index < 64; index++ {
		request, err := unix.NewIfreq("x")
		if err != nil {
			return refused(err)
		}
		request.SetUint32(index)
		if err := unix.IoctlIfreq(fd, unix.SIOCGIFNAME, request); err != nil {
			continue
		}
		if name := request.Name(); name != "lo" {
			return escaped("there is %s", name)
		}
	}
	return harmless("only lo")
}
