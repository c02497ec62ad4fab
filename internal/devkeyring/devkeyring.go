// Package devkeyring stands in for keyring on a machine of a developer: it
// makes tokens, and serves the public key with which they are verified.
//
// It protects nothing beyond that machine. Whoever can read its key file or
// holds its master token can be any account. It listens on loopback addresses
// only.
package devkeyring

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"

	"envapi/core"
)

// MaxLifetime is how long a token lives at most, which is what envapi accepts.
const MaxLifetime = 24 * time.Hour

// Keyring makes tokens with one key. Its methods may be called from many
// goroutines.
type Keyring struct {
	issuer, audience string
	key              *ecdsa.PrivateKey
	kid              string
	master           Token
}

// Grant is what a token permits.
type Grant struct {
	Owner    core.Owner
	Scopes   []core.Scope
	Lifetime time.Duration // above 0, at most MaxLifetime
}

// Token is a token and when it ends.
type Token struct {
	Raw     string
	Expires time.Time
}

// New makes a Keyring whose tokens have an issuer and an audience and are
// signed with a key, see LoadKey.
func New(issuer, audience string, key *ecdsa.PrivateKey) (*Keyring, error) {
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("cannot use the key: %w", err)
	}
	sum := sha256.Sum256(public)
	k := &Keyring{
		issuer: issuer, audience: audience, key: key,
		kid: base64.RawURLEncoding.EncodeToString(sum[:16]),
	}
	k.master, err = k.Mint(Grant{
		Owner:    core.Owner{Account: "dev", Profile: "default"},
		Scopes:   core.AllScopes,
		Lifetime: MaxLifetime,
	})
	return k, err
}

// Master gives the token with which others may be had from POST /token: that
// of the account dev, with every scope, made by New.
func (k *Keyring) Master() Token { return k.master }

// Mint makes a token.
func (k *Keyring) Mint(g Grant) (Token, error) {
	if g.Lifetime <= 0 || g.Lifetime > MaxLifetime {
		return Token{}, fmt.Errorf("cannot make a token that lives %v: the bound is %v", g.Lifetime, MaxLifetime)
	}
	scopes := make([]string, len(g.Scopes))
	for i, s := range g.Scopes {
		scopes[i] = string(s)
	}
	now := time.Now().Truncate(time.Second)
	expires := now.Add(g.Lifetime)
	claims, err := json.Marshal(map[string]any{
		"iss": k.issuer, "aud": k.audience, "sub": g.Owner.Account, "profile": g.Owner.Profile,
		"scope": strings.Join(scopes, " "), "iat": now.Unix(), "exp": expires.Unix(),
	})
	if err != nil {
		return Token{}, fmt.Errorf("cannot make a token: %w", err)
	}
	raw, err := k.sign(claims)
	return Token{Raw: raw, Expires: expires}, err
}

func (k *Keyring) sign(claims []byte) (string, error) {
	header := jws.NewHeaders()
	for name, value := range map[string]string{jws.TypeKey: "at+jwt", jws.KeyIDKey: k.kid} {
		if err := header.Set(name, value); err != nil {
			return "", fmt.Errorf("cannot make a token: %w", err)
		}
	}
	raw, err := jws.Sign(claims, jws.WithKey(jwa.ES256, k.key, jws.WithProtectedHeaders(header)))
	if err != nil {
		return "", fmt.Errorf("cannot sign a token: %w", err)
	}
	return string(raw), nil
}

// keySet gives the public key as a JWKS.
func (k *Keyring) keySet() ([]byte, error) {
	key, err := jwk.FromRaw(k.key.Public())
	if err != nil {
		return nil, fmt.Errorf("cannot publish the key: %w", err)
	}
	for name, value := range map[string]any{jwk.KeyIDKey: k.kid, jwk.AlgorithmKey: jwa.ES256, jwk.KeyUsageKey: jwk.ForSignature} {
		if err := key.Set(name, value); err != nil {
			return nil, fmt.Errorf("cannot publish the key: %w", err)
		}
	}
	return json.Marshal(map[string]any{"keys": []jwk.Key{key}})
}
