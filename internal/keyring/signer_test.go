package keyring

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"sync"
	"testing"
)

// What keyring does, written with the standard library alone, so that the tests
// share nothing with what they test.

var b64 = base64.RawURLEncoding.EncodeToString

// must gives a value that cannot fail to be made.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// keyPairs are the private keys of the tests, by key id.
var keyPairs = sync.OnceValue(func() map[string]crypto.Signer {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	return map[string]crypto.Signer{
		"rsa":   must(rsa.GenerateKey(rand.Reader, 2048)),
		"p256":  must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)),
		"p384":  must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)),
		"p521":  must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)),
		"ed":    must(ed, err),
		"other": must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)),
	}
})

// keyFor names the key that signs by an algorithm.
var keyFor = map[string]string{
	"RS256": "rsa", "RS384": "rsa", "RS512": "rsa", "PS256": "rsa", "PS384": "rsa", "PS512": "rsa",
	"ES256": "p256", "ES384": "p384", "ES512": "p521", "EdDSA": "ed",
}

// signature signs by an algorithm with a key of keyPairs.
func signature(alg, key string, data []byte) []byte {
	signer := keyPairs()[key]
	if alg == "EdDSA" {
		return must(signer.Sign(rand.Reader, data, crypto.Hash(0)))
	}
	hash := map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}[alg[2:]]
	h := hash.New()
	h.Write(data)
	switch alg[:2] {
	case "PS":
		return must(signer.Sign(rand.Reader, h.Sum(nil), &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}))
	case "RS":
		return must(signer.Sign(rand.Reader, h.Sum(nil), hash))
	}
	priv := signer.(*ecdsa.PrivateKey)
	r, s, err := ecdsa.Sign(rand.Reader, priv, h.Sum(nil))
	size := (priv.Params().BitSize + 7) / 8
	return append(must(r, err).FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...)
}

// compact signs a header and claims, given as JSON, into a token.
func compact(alg, key, header, claims string) string {
	signed := b64([]byte(header)) + "." + b64([]byte(claims))
	return signed + "." + b64(signature(alg, key, []byte(signed)))
}

// hmacOver signs like HS256 with the public key as the secret, the classic
// confusion of algorithms.
func hmacOver(key, header, claims string) string {
	signed := b64([]byte(header)) + "." + b64([]byte(claims))
	mac := hmac.New(sha256.New, must(x509.MarshalPKIXPublicKey(keyPairs()[key].Public())))
	mac.Write([]byte(signed))
	return signed + "." + b64(mac.Sum(nil))
}

// jwkOf gives the public JWK of a key, with members added or replaced.
func jwkOf(key string, extra map[string]any) map[string]any {
	m := map[string]any{"kid": key}
	switch pub := keyPairs()[key].Public().(type) {
	case *rsa.PublicKey:
		m["kty"], m["n"], m["e"] = "RSA", b64(pub.N.Bytes()), b64(big.NewInt(int64(pub.E)).Bytes())
	case *ecdsa.PublicKey:
		point := must(pub.Bytes())[1:] // x and y, after the mark of an uncompressed point
		m["kty"], m["crv"] = "EC", pub.Params().Name
		m["x"], m["y"] = b64(point[:len(point)/2]), b64(point[len(point)/2:])
	case ed25519.PublicKey:
		m["kty"], m["crv"], m["x"] = "OKP", "Ed25519", b64(pub)
	}
	for name, value := range extra {
		m[name] = value
	}
	return m
}

// setOf gives a key set as JSON.
func setOf(keys ...map[string]any) string {
	return string(must(json.Marshal(map[string]any{"keys": keys})))
}

// allKeys is the key set of every key but "other".
func allKeys() string {
	return setOf(jwkOf("rsa", nil), jwkOf("p256", nil), jwkOf("p384", nil), jwkOf("p521", nil), jwkOf("ed", nil))
}

// jsonWith gives an object as JSON with changes: nil removes a member.
func jsonWith(base map[string]any, changes map[string]any) string {
	m := map[string]any{}
	for name, value := range base {
		m[name] = value
	}
	for name, value := range changes {
		if m[name] = value; value == nil {
			delete(m, name)
		}
	}
	return string(must(json.Marshal(m)))
}

// keyringWith gives a Keyring that has a key set, without fetching it.
func keyringWith(t testing.TB, set string, types ...string) *Keyring {
	t.Helper()
	keys, err := parseSet([]byte(set))
	if err != nil {
		t.Fatal(err)
	}
	k := &Keyring{
		rules: rules{issuer: testIssuer, audience: testAudience, types: acceptedTypes(append(types, TypeAccessToken))},
		keys:  &keySource{stale: usual.refresh, now: testClock, unknown: nil},
		now:   testClock,
	}
	k.keys.ctx, k.keys.cancel = closedContext()
	k.keys.current.Store(&snapshot{keys: keys, fetchedAt: testNow})
	return k
}
