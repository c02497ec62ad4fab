package keyring

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"slices"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"
)

// This file is all that touches jwx. It is used for what is cryptography, keys
// out of their JSON and signatures over bytes, and not for what is parsing:
// jwx's own parsers accept tokens that this package must refuse.

// algorithms are those that a token may be signed with. There is no symmetric
// one among them, and no "none".
var algorithms = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
}

// The sizes of RSA keys that are accepted, in bits: below is weak, above costs
// more time than a caller may make this service spend.
const minRSABits, maxRSABits = 2048, 8192

// maxExponentBytes bounds the exponent of an RSA key: jwx cuts a longer one.
const maxExponentBytes = 4

// publicKey is a key of keyring's with which tokens are verified.
type publicKey struct {
	kid  string
	key  any      // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
	algs []string // the algorithms that it may be used with
	good *memory  // the signatures of its own that were verified
}

// verify says whether signature is this key's over signed, by alg.
func (k publicKey) verify(alg string, signed, signature []byte) bool {
	if !slices.Contains(k.algs, alg) {
		return false
	}
	token := identify(alg, signed, signature)
	if k.good.has(token) {
		return true
	}
	v, err := jws.NewVerifier(jwa.SignatureAlgorithm(alg))
	if err != nil || v.Verify(signed, signature, k.key) != nil {
		return false
	}
	k.good.add(token)
	return true
}

var errUnusableKey = errors.New("not a public key for signatures that is usable here")

// parseKey reads one key of a key set. It fails for a key that must not or
// cannot verify tokens: private, symmetric, without an id, for another use,
// weak, or broken.
func parseKey(raw json.RawMessage) (publicKey, error) {
	m, err := parseObject(raw)
	if err != nil {
		return publicKey{}, err
	}
	kid, _ := m.str("kid")
	if !validName(kid) || holdsSecret(m) || !forSignatures(m) {
		return publicKey{}, errUnusableKey
	}
	key, err := rawKey(raw)
	if err != nil {
		return publicKey{}, err
	}
	algs := algorithmsOf(key)
	if _, given := m["alg"]; given {
		alg, _ := m.str("alg")
		if !slices.Contains(algs, alg) {
			return publicKey{}, errUnusableKey
		}
		algs = []string{alg}
	}
	if len(algs) == 0 {
		return publicKey{}, errUnusableKey
	}
	return publicKey{kid: kid, key: key, algs: algs, good: newMemory()}, nil
}

// rawKey gives the key that a JWK describes.
func rawKey(raw json.RawMessage) (key any, err error) {
	parsed, err := jwk.ParseKey(raw)
	if err != nil {
		return nil, err
	}
	if r, ok := parsed.(jwk.RSAPublicKey); ok && len(r.E()) > maxExponentBytes {
		return nil, errUnusableKey
	}
	err = parsed.Raw(&key)
	return key, err
}

// holdsSecret says whether a key is symmetric or has any private member.
func holdsSecret(m members) bool {
	for _, name := range []string{"k", "d", "p", "q", "dp", "dq", "qi", "oth"} {
		if _, ok := m[name]; ok {
			return true
		}
	}
	return false
}

// forSignatures says whether a key's use and key_ops, where given, are the
// verification of signatures.
func forSignatures(m members) bool {
	if _, given := m["use"]; given {
		if use, _ := m.str("use"); use != "sig" {
			return false
		}
	}
	if _, given := m["key_ops"]; !given {
		return true
	}
	var ops []string
	return json.Unmarshal(m["key_ops"], &ops) == nil && slices.Contains(ops, "verify")
}

// algorithmsOf gives the algorithms that a sound key of its type can be used
// with; none for a key that is weak, broken or of another type.
func algorithmsOf(key any) []string {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits >= minRSABits && bits <= maxRSABits && soundExponent(key.E) {
			return algorithms[:6]
		}
	case *ecdsa.PublicKey:
		if _, err := key.ECDH(); err == nil { // the point is on its curve
			return ecdsaAlgorithms[key.Curve.Params().Name]
		}
	case ed25519.PublicKey:
		if len(key) == ed25519.PublicKeySize {
			return []string{"EdDSA"}
		}
	}
	return nil
}

// ecdsaAlgorithms gives the one algorithm of each curve (RFC 7518, 3.4).
var ecdsaAlgorithms = map[string][]string{"P-256": {"ES256"}, "P-384": {"ES384"}, "P-521": {"ES512"}}

func soundExponent(e int) bool { return e >= 3 && e%2 == 1 && e <= 1<<31-1 }
