package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// KeepSettings keeps the text in the place of the one before.
func (s *Store) KeepSettings(ctx context.Context, account, text string) error {
	return s.write(ctx, s.quick, "keep the settings of an account", func(ctx context.Context, tx *statements) error {
		_, err := tx.exec(ctx, `INSERT INTO settings (account, text, kept_ms) VALUES (?1, ?2, ?3)
			ON CONFLICT (account) DO UPDATE SET text = ?2, kept_ms = ?3`, account, text, time.Now().UnixMilli())
		return err
	})
}

// Settings gives the text that was kept last, or "".
func (s *Store) Settings(ctx context.Context, account string) (text string, err error) {
	err = s.reads.row(ctx, `SELECT text FROM settings WHERE account = ?`, account).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return text, failed("read the settings of an account", err)
}
