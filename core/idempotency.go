package core

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
