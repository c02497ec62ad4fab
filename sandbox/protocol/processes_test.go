package protocol_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"envapi/sandbox/protocol"
)

// entity is one that an honest init says.
func entity(pid int) protocol.Entity {
	return protocol.Entity{
		PID: pid, Parent: 1, Birth: 5, State: "S", Command: "sh", CPU: 6, Percent: 7.5, Memory: 8, Threads: 1, Of: 9, Marks: 2,
		Listens: []protocol.Listen{{Protocol: "tcp6", At: netip.MustParseAddrPort("[::ffff:127.0.0.1]:80")}},
	}
}

func encoded(t testing.TB, entities ...protocol.Entity) []byte {
	t.Helper()
	b, err := json.Marshal(protocol.Listing{Processes: entities})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestListingsAreReadBack(t *testing.T) {
	want := protocol.Listing{Processes: []protocol.Entity{entity(2), entity(3)}}
	if got, err := protocol.DecodeListing(encoded(t, want.Processes...)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestHostileListingsAreRefused(t *testing.T) {
	one := func(change func(*protocol.Entity)) []byte {
		e := entity(2)
		change(&e)
		return encoded(t, e)
	}
	many := make([]protocol.Entity, protocol.MaxEntries+1)
	for i := range many {
		many[i] = entity(i + 1)
		many[i].Listens = nil
	}
	crowd := entity(2)
	for i := range protocol.MaxListeners + 1 {
		crowd.Listens = append(crowd.Listens, protocol.Listen{Protocol: "tcp", At: netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(i+1))})
	}
	for name, input := range map[string][]byte{
		"nothing":                  nil,
		"D19 garbage":              []byte(strings.Repeat("\xffgarbage", 100)),
		"something behind":         append(encoded(t, entity(2)), '1'),
		"an unknown member":        []byte(`{"processes":[],"x":1}`),
		"no list":                  []byte(`{"processes":null}`),
		"an end that is missing":   []byte(`{"processes":[]`),
		"an unknown member inside": []byte(`{"processes":[{"pid":1,"x":1}]}`),
		"twice the same":           encoded(t, entity(2), entity(2)),
		"another order":            encoded(t, entity(3), entity(2)),
		"too many":                 encoded(t, many...),
		"too many listeners":       encoded(t, crowd),
		"pid 0":                    one(func(e *protocol.Entity) { e.PID = 0 }),
		"a huge pid":               one(func(e *protocol.Entity) { e.PID = 1 << 40 }),
		"a parent below 0":         one(func(e *protocol.Entity) { e.Parent = -1 }),
		"a birth in ages":          one(func(e *protocol.Entity) { e.Birth = 1 << 63 }),
		"no state":                 one(func(e *protocol.Entity) { e.State = "" }),
		"a long state":             one(func(e *protocol.Entity) { e.State = "SS" }),
		"a state that is none":     one(func(e *protocol.Entity) { e.State = "\n" }),
		"a long command":           one(func(e *protocol.Entity) { e.Command = strings.Repeat("x", protocol.MaxCommand+1) }),
		"negative use":             one(func(e *protocol.Entity) { e.CPU = -1 }),
		"a negative share":         one(func(e *protocol.Entity) { e.Percent = -1 }),
		"a huge share":             one(func(e *protocol.Entity) { e.Percent = 1e300 }),
		"negative memory":          one(func(e *protocol.Entity) { e.Memory = -1 }),
		"negative threads":         one(func(e *protocol.Entity) { e.Threads = -1 }),
		"an unknown protocol":      one(func(e *protocol.Entity) { e.Listens[0].Protocol = "sctp" }),
		"no address":               one(func(e *protocol.Entity) { e.Listens[0].At = netip.AddrPort{} }),
		"port 0":                   one(func(e *protocol.Entity) { e.Listens[0].At = netip.MustParseAddrPort("1.2.3.4:0") }),
		"an address with a zone":   one(func(e *protocol.Entity) { e.Listens[0].At = netip.MustParseAddrPort("[fe80::1%<b>]:80") }),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := protocol.DecodeListing(input); err == nil {
				t.Errorf("accepted %d processes", len(got.Processes))
			}
		})
	}
}

// TestAHostileListingTakesLittleMemory: each of these would be a hundred megabytes or
// more, if all of it was decoded before it is refused.
func TestAHostileListingTakesLittleMemory(t *testing.T) {
	full := func(begin, piece, end string) []byte {
		room := protocol.MaxListing - len(begin) - len(end)
		return []byte(begin + strings.Repeat(piece+",", room/(len(piece)+1)-1) + piece + end)
	}
	for name, input := range map[string][]byte{
		"processes": full(`{"processes":[`, "{}", `]}`),
		"listeners": full(`{"processes":[{"pid":1,"state":"S","listens":[`, "{}", `]}]}`),
		"members":   full(`{"processes":[{`, `"listens":[{}]`, `}]}`),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := protocol.DecodeListing(input)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: accepted %d processes", name, len(got.Processes))
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 8*protocol.MaxListing {
			t.Errorf("%s: it took %d MiB", name, used>>20)
		}
	}
}

func FuzzDecodeListing(f *testing.F) {
	f.Add(encoded(f, entity(2), entity(3)))
	f.Add([]byte(`{"processes":[]}`))
	f.Add([]byte(fmt.Sprintf(`{"processes":[{"pid":1,"state":"R","command":%q}]}`, "\xff\x00")))
	f.Fuzz(func(t *testing.T, input []byte) {
		l, err := protocol.DecodeListing(input)
		if err != nil {
			return
		}
		again, err := protocol.DecodeListing(encoded(t, l.Processes...))
		if err != nil || len(again.Processes) != len(l.Processes) {
			t.Errorf("accepted %+v, which is not read back: %v", l, err)
		}
	})
}
