package keyring

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"envapi/core"
)

// Config is what a Keyring is made of. Issuer, Audience, JWKSURL and Stale are
// required.
type Config struct {
	JWKSURL    string           // where the key set is fetched; see CheckURL
	Issuer     string           // the iss that tokens must have, exactly
	Audience   string           // the aud that tokens must have or contain
	TokenTypes []string         // at+jwt, JWT; empty means at+jwt alone
	Stale      time.Duration    // how long keys serve after keyring was last reached
	Log        *slog.Logger     // nil discards
	Now        func() time.Time // the clock; nil means time.Now
}

// Keyring verifies tokens. Its methods may be called from many goroutines.
type Keyring struct {
	rules rules
	keys  *keySource
	read  readings
	now   func() time.Time
}

// Status says whether tokens can be verified. Nothing in it is secret.
type Status struct {
	Verifies  bool          // keys are in hand and not too old
	Since     time.Time     // since when Verifies has been what it is
	Fetched   bool          // keys were fetched at least once
	KeysAge   time.Duration // how long ago that was last so, where Fetched
	LastError string        // why the last fetch failed, in public words; "" where it did not
}

// New makes a Keyring and starts to fetch the keys in the background. It does
// not wait for keyring: until the keys are there, Verify fails with
// `unavailable`. Close ends it.
func New(c Config) (*Keyring, error) { return newKeyring(c, usual) }

func newKeyring(c Config, t timing) (*Keyring, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if len(c.TokenTypes) == 0 {
		c.TokenTypes = []string{TypeAccessToken}
	}
	return &Keyring{
		rules: rules{issuer: c.Issuer, audience: c.Audience, types: acceptedTypes(c.TokenTypes)},
		keys:  startKeySource(c, t),
		now:   c.Now,
	}, nil
}

func (c Config) check() error {
	switch {
	case c.Issuer == "":
		return errors.New("cannot verify tokens without an issuer")
	case c.Audience == "":
		return errors.New("cannot verify tokens without an audience")
	case c.Stale <= 0:
		return errors.New("cannot verify tokens without a bound on the age of the keys")
	}
	return CheckURL(c.JWKSURL)
}

// Verify gives the caller that a token names. A token that is not accepted
// fails with `unauthenticated` and a reason for its bearer; where no token can
// be judged, because there are no keys or they are too old, it fails with
// `unavailable`.
func (k *Keyring) Verify(ctx context.Context, raw string) (core.Caller, error) {
	if !k.keys.usable() {
		return core.Caller{}, core.Errorf(core.CodeUnavailable,
			"tokens cannot be verified now, since keyring has not been reached: try again").
			With("retry_after_ms", retryAfter.Milliseconds())
	}
	caller, err := k.verify(ctx, raw)
	if err != nil {
		return core.Caller{}, core.Errorf(core.CodeUnauthenticated,
			"the token is refused, since %v: ask keyring for a new one", err)
	}
	return caller, nil
}

// verify reads the header, verifies the signature and only then looks at the
// claims. Its errors are public.
func (k *Keyring) verify(ctx context.Context, raw string) (core.Caller, error) {
	t, err := k.read.parse(raw)
	if err != nil {
		return core.Caller{}, err
	}
	h, err := k.rules.header(t.header)
	if err != nil {
		return core.Caller{}, err
	}
	key, ok := k.keys.find(ctx, h.kid)
	if !ok || !key.verify(h.alg, t.signed, t.signature) {
		return core.Caller{}, refusal("its signature does not verify")
	}
	k.read.keep(raw, t)
	return k.rules.caller(t.claims, k.now())
}

// Status says whether tokens can be verified.
func (k *Keyring) Status() Status { return k.keys.status() }

// Await returns when keys are in hand, or with the context's error.
func (k *Keyring) Await(ctx context.Context) error {
	select {
	case <-k.keys.fetched:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the background work. Keys in hand stay usable until they are too
// old.
func (k *Keyring) Close() error {
	k.keys.close()
	return nil
}
