package keyring

import "testing"

func TestAMemoryTellsApartWhatWasVerified(t *testing.T) {
	m := newMemory()
	m.add(identify("ES256", []byte("signed"), []byte("signature")))
	for _, c := range []struct {
		name                   string
		alg, signed, signature string
		want                   bool
	}{
		{"the same", "ES256", "signed", "signature", true},
		{"another algorithm", "ES384", "signed", "signature", false},
		{"another payload", "ES256", "signee", "signature", false},
		{"another signature", "ES256", "signed", "signaturE", false},
		{"the border moved", "ES256", "signeds", "ignature", false},
	} {
		if got := m.has(identify(c.alg, []byte(c.signed), []byte(c.signature))); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestAMemoryIsBounded(t *testing.T) {
	m := newMemory()
	for i := range 3 * remembered {
		m.add(identify("ES256", []byte{byte(i), byte(i >> 8), byte(i >> 16)}, nil))
	}
	if len(m.good) > remembered {
		t.Errorf("it holds %d", len(m.good))
	}
}
