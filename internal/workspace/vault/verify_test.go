package vault_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"envapi/internal/workspace/vault"
)

func TestVerifyCountsWhatWasPacked(t *testing.T) {
	var b bytes.Buffer
	use, err := vault.Pack(t.Context(), hold(t, small(t)), &b)
	must(t, err)
	files, err := vault.Verify(t.Context(), &b)
	if err != nil || files != use.Files {
		t.Errorf("it has %d, packed were %d: %v", files, use.Files, err)
	}
}

func TestVerifyStopsWhenItIsTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := vault.Verify(ctx, bytes.NewReader(pack(t, small(t)))); !errors.Is(err, context.Canceled) {
		t.Errorf("it went on: %v", err)
	}
}
