package vault_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"envapi/internal/workspace/vault"
)

func TestVerifyReadsNoMoreThanWasPacked(t *testing.T) {
	var b bytes.Buffer
	use, err := vault.Pack(t.Context(), hold(t, small(t)), &b)
	must(t, err)
	if err := vault.Verify(t.Context(), bytes.NewReader(b.Bytes()), use.Files); err != nil {
		t.Error(err)
	}
	if err := vault.Verify(t.Context(), &b, use.Files-1); !errors.Is(err, vault.ErrDamaged) {
		t.Errorf("with one file more: %v", err)
	}
}

func TestVerifyStopsWhenItIsTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := vault.Verify(ctx, bytes.NewReader(pack(t, small(t))), math.MaxInt64); !errors.Is(err, context.Canceled) {
		t.Errorf("it went on: %v", err)
	}
}
