package protocol

import (
	"math"
	"net/netip"
	"slices"
	"syscall"
	"unicode/utf8"
)

// Bounds of a Listing. With all of them reached it still fits, the commands cut
// short.
const (
	MaxListing   = 4 << 20 // bytes
	MaxEntries   = 8192    // processes: those with the lowest pids
	MaxCommand   = 1 << 10 // bytes of each command
	MaxListeners = 1024    // of all processes together
)

// List asks for the processes of the box. With it comes a file of MaxListing bytes,
// into which the Listing is written.
type List struct {
	Seq uint64 `json:"seq"`
}

// Listed answers a List.
type Listed struct {
	Seq    uint64        `json:"seq"`
	Errno  syscall.Errno `json:"errno"`
	Length int           `json:"length"` // of the Listing, in bytes
}

// Aim names a process, and what else it must be.
type Aim struct {
	PID int `json:"pid"`
	// Birth is when it began, in ticks since the host did; 0: whenever.
	Birth uint64 `json:"birth,omitempty"`
}

// The answers to an Aim that nothing is at.
const (
	NoProcess = syscall.ESRCH  // no process of the box has the pid
	Replaced  = syscall.ESTALE // another one has, than the one that began then
)

// Strike sends a signal to one process, and with Tree to all below it. It is
// answered by Signaled: a KILL when what it reached has ended, and with how many
// those were.
type Strike struct {
	Seq    uint64         `json:"seq"`
	Aim    Aim            `json:"aim"`
	Signal syscall.Signal `json:"signal"`
	Tree   bool           `json:"tree,omitempty"`
}

// Wait waits for the end of a process. Found says at once whether it is there, and
// where it is, Waited how it ended.
type Wait struct {
	Seq uint64 `json:"seq"` // of Found
	End uint64 `json:"end"` // of Waited
	Aim Aim    `json:"aim"`
}

// Cancel ends a wait: Waited says how it is at that moment. Where the wait has just
// ended by itself nothing is done.
type Cancel struct {
	End uint64 `json:"end"`
}

// Found answers a Wait.
type Found struct {
	Seq   uint64        `json:"seq"`
	Errno syscall.Errno `json:"errno"`
}

// Waited answers a Wait that has found its process.
type Waited struct {
	End        uint64 `json:"end"`
	Ended      bool   `json:"ended"` // else the wait was cancelled
	Known      bool   `json:"known"` // whether how it ended is
	WaitStatus uint32 `json:"wait_status"`
}

// Listing is the processes of a box, in the order of their pids.
type Listing struct {
	Processes []Entity `json:"processes"`
}

// Entity is one process of a Listing.
type Entity struct {
	PID     int      `json:"pid"`
	Parent  int      `json:"parent"`
	Birth   uint64   `json:"birth"` // in ticks since the host began
	State   string   `json:"state"` // the letter of /proc/PID/stat
	Command string   `json:"command"`
	CPU     int64    `json:"cpu"` // nanoseconds of a processor
	Percent float64  `json:"percent"`
	Memory  int64    `json:"memory"` // resident bytes
	Threads int      `json:"threads"`
	Of      uint64   `json:"of,omitempty"`    // the command that it descends from; 0: none that is there
	Marks   uint64   `json:"marks,omitempty"` // how many marks that had when the process came, or what it descends from did
	Listens []Listen `json:"listens,omitempty"`
}

// Listen is a port that a process listens at.
type Listen struct {
	Protocol string         `json:"protocol"`
	At       netip.AddrPort `json:"at"`
}

// ListenProtocols are those of a Listen.
var ListenProtocols = []string{"tcp", "tcp6", "udp", "udp6"}

// valid says whether an honest init could have said that.
func (e Entity) valid() bool {
	switch {
	case e.PID > math.MaxInt32, e.Parent < 0, e.Parent > math.MaxInt32, e.Birth > maxBirth:
	case len(e.State) != 1 || e.State[0] < 'A' || e.State[0] > 'z':
	case len(e.Command) > MaxCommand || !utf8.ValidString(e.Command):
	case e.CPU < 0 || e.Percent < 0 || e.Percent > maxPercent || e.Memory < 0 || e.Threads < 0:
	default:
		return !slices.ContainsFunc(e.Listens, func(l Listen) bool { return !l.valid() })
	}
	return false
}

func (l Listen) valid() bool {
	return slices.Contains(ListenProtocols, l.Protocol) && l.At.IsValid() && l.At.Addr().Zone() == "" && l.At.Port() != 0
}

const (
	// maxBirth is two hundred years in ticks: for more, a time.Duration has no room.
	maxBirth = 200 * 365 * 24 * 3600 * 100
	// maxPercent is that of more processors than there are.
	maxPercent = 100 << 16
)
