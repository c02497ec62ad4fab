package prompt_test

import (
	"testing"

	"envapi/sandbox/prompt"
)

func TestParseCall(t *testing.T) {
	for line, want := range map[string]bool{
		"0 0x0 0x7ffe10 0x1000 0x0 0x0 0x0 0x7ffe00 0x7f00\n": true,
		"23 0x1 0x2 0x3 0x4 0x5 0xffffffffffffffff 0x1 0x2\n": true,
		"running\n":                                     false,
		"-1 0x7ffe 0x7f00\n":                            false,
		"-1 0x0 0x0 0x0 0x0 0x0 0x0 0x0":                false,
		"0 0x0 0x7ffe10\n":                              false,
		"0 0 0 0 0 0 0 0 0\n":                           false,
		"0 0x1ffffffffffffffff 0x0 0x0 0x0 0x0 0x0 0x0": false,
		"": false,
	} {
		if _, ok := prompt.ParseCall([]byte(line)); ok != want {
			t.Errorf("%q: got %v", line, ok)
		}
	}
}

func TestParseTarget(t *testing.T) {
	for line, want := range map[string]int{
		"tfd:        7 events:       19 data: 7  pos:0 ino:b sdev:1a\n": 7,
		"tfd:        0 events:        1 data: 0\n":                      0,
		"tfd:        0 events: 8000001b data: 0\n":                      0, // edge-triggered too
		"tfd:        7 events:        4 data: 7\n":                      -1,
		"tfd:       -7 events:        1 data: 7\n":                      -1,
		"tfd:        7 events:        g data: 7\n":                      -1,
		"tfd: 99999999999999999999 events: 1\n":                         -1,
		"pos:	0\n":                                                      -1,
		"":                                                              -1,
	} {
		fd, ok := prompt.ParseTarget([]byte(line))
		if ok != (want >= 0) || ok && fd != want {
			t.Errorf("%q: got %d, %v", line, fd, ok)
		}
	}
}

func TestParseStat(t *testing.T) {
	const rest = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20\n"
	for content, want := range map[string]byte{
		"12 (cat) S" + rest:       'S',
		"12 (a) S 1 (b) T" + rest: 'T',
		"12 (cat) S 1 2 3":        0,
		"12 (cat) SS" + rest:      0,
		"12 (cat) S x x x x x x x x x x x x x x x x x x x x": 0,
		"": 0,
	} {
		_, state, ok := prompt.ParseStat([]byte(content))
		if ok != (want != 0) || ok && state != want {
			t.Errorf("%q: got %c, %v", content, state, ok)
		}
	}
}

// FuzzWhatIsRead: no line of /proc, whoever wrote it, upsets its reader.
func FuzzWhatIsRead(f *testing.F) {
	f.Add([]byte("0 0x0 0x7ffe10 0x1000 0x0 0x0 0x0 0x7ffe00 0x7f00\n"))
	f.Add([]byte("tfd:        7 events:       19 data: 7\n"))
	f.Add([]byte("1 (a b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if fd, ok := prompt.ParseTarget(line); ok && fd < 0 {
			t.Errorf("a descriptor %d", fd)
		}
		if _, state, ok := prompt.ParseStat(line); ok && state == 0 {
			t.Error("no state")
		}
		if c, ok := prompt.ParseCall(line); ok && len(line) < 20 {
			t.Errorf("a call %+v of %d bytes", c, len(line))
		}
	})
}
