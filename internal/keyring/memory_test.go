package keyring

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

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

// How a token was taken apart is kept once its signature verified, and only then; what
// it says is judged every time.
func TestReadingsAreOfVerifiedTokensAlone(t *testing.T) {
	k := keyringWith(t, allKeys())
	now := testNow
	k.now = func() time.Time { return now }
	good := signed(headerWith(nil), claimsWith(nil))
	other := signed(headerWith(nil), claimsWith(m{"sub": "bob"}))
	forged := other[:strings.LastIndex(other, ".")] + good[strings.LastIndex(good, "."):]
	for range 2 {
		if caller, err := k.Verify(t.Context(), good); err != nil || caller.Account != "alice" {
			t.Errorf("got %v, %v", caller, err)
		}
		if _, err := k.Verify(t.Context(), forged); err == nil {
			t.Error("a forged token is accepted")
		}
	}
	if len(k.read.some) != 1 {
		t.Errorf("%d readings are kept", len(k.read.some))
	}
	now = testNow.Add(2 * time.Hour)
	if _, err := k.Verify(t.Context(), good); err == nil {
		t.Error("a token that has expired since is accepted")
	}
	for i := range kept + 1 {
		k.read.keep(strconv.Itoa(i), token{})
	}
	if len(k.read.some) > kept {
		t.Errorf("%d readings are kept", len(k.read.some))
	}
}
