package keyring

import (
	"strings"
	"testing"

	"envapi/core"
)

func TestKeysThatMustNotVerifyAreDropped(t *testing.T) {
	for name, key := range map[string]m{
		"E4 symmetric":           {"kty": "oct", "kid": "p256", "k": "AAAA"},
		"E4 private":             jwkOf("p256", m{"d": b64(make([]byte, 32))}),
		"E4 private, d empty":    jwkOf("p256", m{"d": ""}),
		"E4 RSA with a prime":    jwkOf("rsa", m{"kid": "p256", "p": "AQAB"}),
		"without kid":            jwkOf("p256", m{"kid": nil}),
		"kid a number":           jwkOf("p256", m{"kid": 1}),
		"for encryption":         jwkOf("p256", m{"use": "enc"}),
		"use null":               jwkOf("p256", m{"use": nil}),
		"key_ops without verify": jwkOf("p256", m{"key_ops": []string{"encrypt"}}),
		"alg of another curve":   jwkOf("p256", m{"alg": "ES384"}),
		"alg symmetric":          jwkOf("p256", m{"alg": "HS256"}),
		"alg none":               jwkOf("p256", m{"alg": "none"}),
		"alg a number":           jwkOf("p256", m{"alg": 256}),
		"unknown type":           {"kty": "XYZ", "kid": "p256"},
		"unknown curve":          jwkOf("p256", m{"crv": "P-257"}),
		"point off the curve":    jwkOf("p256", m{"x": b64(make([]byte, 32))}),
		"point at infinity":      jwkOf("p256", m{"x": b64(make([]byte, 32)), "y": b64(make([]byte, 32))}),
		"coordinate too long":    jwkOf("p256", m{"x": b64([]byte(strings.Repeat("\xff", 80)))}),
		"without y":              jwkOf("p256", m{"y": nil}),
		"Ed25519 too short":      jwkOf("ed", m{"kid": "p256", "x": b64(make([]byte, 31))}),
		"X25519":                 jwkOf("ed", m{"kid": "p256", "crv": "X25519"}),
		"RSA of 1024 bits":       jwkOf("rsa", m{"kid": "p256", "n": b64([]byte(strings.Repeat("\xff", 128)))}),
		"RSA of 16384 bits":      jwkOf("rsa", m{"kid": "p256", "n": b64([]byte(strings.Repeat("\xff", 2048)))}),
		"RSA with exponent 1":    jwkOf("rsa", m{"kid": "p256", "e": "AQ"}),
		"RSA without exponent":   jwkOf("rsa", m{"kid": "p256", "e": ""}),
		"RSA, exponent too long": jwkOf("rsa", m{"kid": "p256", "e": b64([]byte("\x01\x00\x00\x00\x00\x00\x00\x00\x03"))}),
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := parseSet([]byte(setOf(key, jwkOf("p384", nil))))
			if err != nil || len(keys) != 1 || keys["p384"].kid == "" {
				t.Errorf("got %v, %v; want only the good key beside it", keys, err)
			}
		})
	}
}

func TestKeysThatShareAnIdAreAllDropped(t *testing.T) {
	keys, err := parseSet([]byte(setOf(jwkOf("p256", nil), jwkOf("other", m{"kid": "p256"}), jwkOf("ed", nil))))
	if err != nil || len(keys) != 1 || keys["ed"].kid == "" {
		t.Errorf("got %v, %v", keys, err)
	}
}

func TestTheAlgOfAKeyBindsItsTokens(t *testing.T) {
	k := keyringWith(t, setOf(jwkOf("rsa", m{"alg": "RS512", "use": "sig", "key_ops": []string{"verify"}})))
	for alg, want := range map[string]core.Code{"RS512": "", "RS256": core.CodeUnauthenticated, "PS512": core.CodeUnauthenticated} {
		raw := compact(alg, "rsa", headerWith(m{"alg": alg, "kid": "rsa"}), claimsWith(nil))
		if _, err := k.Verify(t.Context(), raw); code(err) != want {
			t.Errorf("%s: %v", alg, err)
		}
	}
}
