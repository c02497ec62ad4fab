package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"envapi/core"
)

// Made gives the id of what was made under key, or "".
func (s *Store) Made(ctx context.Context, o core.Owner, key core.Idempotency) (string, error) {
	id, err := madeUnder(ctx, s.reads, o, key)
	return id, failed("look for what was made under an idempotency key", err)
}

// madeUnder gives the id of what was made under key, or "" where nothing was
// and for the empty key. Another fingerprint is `idempotency_mismatch`.
func madeUnder(ctx context.Context, q *statements, o core.Owner, key core.Idempotency) (string, error) {
	if key.Key == "" {
		return "", nil
	}
	var fingerprint, id string
	err := q.row(ctx, `SELECT fingerprint, resource_id FROM idempotency
		WHERE account = ? AND profile = ? AND operation = ? AND key = ?`,
		o.Account, o.Profile, key.Operation, key.Key).Scan(&fingerprint, &id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", nil
	case err != nil:
		return "", err
	case fingerprint != key.Fingerprint:
		return "", core.Errorf(core.CodeIdempotencyMismatch,
			"the idempotency key %q was used before with another input: use a new key for a new request", key.Key)
	}
	return id, nil
}

// rememberKey notes, in the transaction that makes it, what is made under key, and
// when.
func rememberKey(ctx context.Context, tx *statements, o core.Owner, key core.Idempotency, id string, at time.Time) error {
	if key.Key == "" {
		return nil
	}
	_, err := tx.exec(ctx, `INSERT INTO idempotency (account, profile, operation, key, fingerprint, resource_id, created_ms)
		VALUES (?, ?, ?, ?, ?, ?, ?)`, o.Account, o.Profile, key.Operation, key.Key, key.Fingerprint, id, at.UnixMilli())
	return err
}

// dropKey forgets the key under which id was made.
func dropKey(ctx context.Context, tx *statements, id string) error {
	_, err := tx.exec(ctx, `DELETE FROM idempotency WHERE resource_id = ?`, id)
	return err
}
