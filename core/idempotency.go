package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// maxIdempotencyKey bounds a key, in bytes.
const maxIdempotencyKey = 128

// idempotency makes the key of an operation. Input is what must be the same for
// the same key: without the key itself and without what only shapes the answer.
// An empty key is none: a caller who gives one is refused by its schema.
func idempotency(operation, key string, input any) (Idempotency, error) {
	if key == "" {
		return Idempotency{}, nil
	}
	if len(key) > maxIdempotencyKey || !utf8.ValidString(key) {
		return Idempotency{}, invalid("idempotency_key", "idempotency_key must be valid UTF-8 of at most %d bytes", maxIdempotencyKey)
	}
	hash := sha256.New()
	if err := json.NewEncoder(hash).Encode(input); err != nil {
		return Idempotency{}, err
	}
	return Idempotency{Operation: operation, Key: key, Fingerprint: hex.EncodeToString(hash.Sum(nil))}, nil
}

// onceUnder makes something under a key, or finds what was made under it before. Who comes
// while it is being made waits for that, and makes it where that failed. This process
// alone works on the data folder: that suffices to make one only.
func onceUnder[T any](ctx context.Context, s *Service, o Owner, key Idempotency, find func(id string) (T, error), make func() (T, error)) (T, error) {
	if key.Key == "" {
		return make()
	}
	var none T
	release, err := s.keyed.take(ctx, fmt.Sprintf("%q", []string{o.Account, o.Profile, key.Operation, key.Key}))
	if err != nil {
		return none, err
	}
	defer release()
	id, err := s.Store.Made(ctx, o, key)
	if err != nil {
		return none, err
	}
	if id != "" {
		found, err := find(id)
		if err == nil || AsError(err).Code != CodeNotFound {
			return found, err
		}
		// It was removed since, and the key with it.
	}
	return make()
}
