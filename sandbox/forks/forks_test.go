package forks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"envapi/sandbox/forks"
)

func TestSettleWaitsForThoseThatAreThere(t *testing.T) {
	if err := forks.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	grown := forks.Begin()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := forks.Settle(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	settled := make(chan error)
	go func() { settled <- forks.Settle(t.Context()) }()
	grown()
	if err := <-settled; err != nil {
		t.Errorf("got %v", err)
	}
}
