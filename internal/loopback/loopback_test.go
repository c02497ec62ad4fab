package loopback

import "testing"

func TestIs(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost":         true,
		"127.0.0.1":         true,
		"127.255.0.9":       true,
		"::1":               true,
		"::ffff:127.0.0.1":  true,
		"":                  false,
		"[::1]":             false, // brackets belong to an address with a port
		"127.1":             false, // some resolvers read it so; nobody needs it
		"localhost.":        false,
		"localhost.example": false,
		"127.0.0.1.example": false,
		"0.0.0.0":           false,
		"::":                false,
		"192.0.2.1":         false,
		"::ffff:192.0.2.1":  false,
	} {
		if got := Is(host); got != want {
			t.Errorf("%q: got %v", host, got)
		}
	}
}
