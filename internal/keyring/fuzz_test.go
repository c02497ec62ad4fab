package keyring

import (
	"crypto/ecdsa"
	"strings"
	"testing"
)

// FuzzVerify signs any header and claims with a key that is trusted, bends the
// token, and holds Verify to the reference reader: what it accepts, that one
// accepts, with the same account.
func FuzzVerify(f *testing.F) {
	for _, raw := range refusedTokens() {
		if parts := strings.Split(raw, "."); len(parts) == 3 && len(raw) < MaxTokenBytes {
			f.Add(refBase64(parts[0]), refBase64(parts[1]), "", 0)
		}
	}
	f.Add([]byte(headerWith(nil)), []byte(claimsWith(nil)), "", 0)
	f.Add([]byte(headerWith(nil)), []byte(claimsWith(m{"aud": []string{testAudience}, "nbf": at(0)})), "\n", 5)
	f.Add([]byte(`{"typ":"at+jwt","alg":"ES256","kid":"p256","a":{"b":[1,null,true,"\ud83d\ude00"]}}`), []byte(claimsWith(m{"profile": "w"})), "=", -1)
	k := keyringWith(f, setOf(jwkOf("p256", nil)))
	key := keyPairs()["p256"].Public().(*ecdsa.PublicKey)
	f.Fuzz(func(t *testing.T, header, claims []byte, insert string, where int) {
		raw := signed(string(header), string(claims))
		if insert != "" {
			at := min(max(where, 0), len(raw))
			raw = raw[:at] + insert + raw[at:]
		}
		caller, err := k.Verify(t.Context(), raw)
		if err != nil {
			return
		}
		account, ok := refAccepts(raw, key, "p256", testNow)
		if !ok || account != caller.Account {
			t.Errorf("accepted as %+v, the reference says %q, %v: header %q claims %q", caller, account, ok, header, claims)
		}
	})
}

// FuzzParseSet holds that no answer of keyring's does worse than to be refused.
func FuzzParseSet(f *testing.F) {
	f.Add([]byte(allKeys()))
	f.Add([]byte(setOf(jwkOf("p256", m{"d": "AA"}), jwkOf("rsa", m{"e": ""}), m{"kty": "OKP", "crv": "Ed25519", "x": ""})))
	f.Add([]byte(`{"keys":[{}]}`))
	f.Fuzz(func(t *testing.T, set []byte) {
		keys, err := parseSet(set)
		if (err == nil) != (len(keys) > 0) {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		for kid, key := range keys {
			if kid == "" || kid != key.kid || len(key.algs) == 0 {
				t.Errorf("a key that cannot be used was kept: %+v", key)
			}
			for _, alg := range algorithms { // must not panic
				if key.verify(alg, []byte("x"), []byte("x")) {
					t.Errorf("%s verified nonsense", alg)
				}
			}
		}
	})
}

// TestTheReferenceReaderAcceptsAndRefuses keeps the reference honest.
func TestTheReferenceReaderAcceptsAndRefuses(t *testing.T) {
	key := keyPairs()["p256"].Public().(*ecdsa.PublicKey)
	if account, ok := refAccepts(signed(headerWith(nil), claimsWith(nil)), key, "p256", testNow); !ok || account != "alice" {
		t.Errorf("a good token: %q, %v", account, ok)
	}
	stricter := map[string]bool{ // rules of ours about names, which no standard has
		"E9 sub with a newline": true, "E9 sub with a hidden letter": true,
		"E9 profile empty": true, "E9 profile with NUL": true,
		"E6 nested too deeply": true,
	}
	for name, raw := range refusedTokens() {
		if _, ok := refAccepts(raw, key, "p256", testNow); ok && !stricter[name] {
			t.Errorf("the reference accepts %s", name)
		}
	}
}
