package turns_test

import (
	"context"
	"errors"
	"testing"

	"envapi/core"
	"envapi/internal/workspace/turns"
)

func of(t *testing.T, account string) context.Context {
	t.Helper()
	return core.WithCaller(t.Context(), core.Caller{Owner: core.Owner{Account: account}})
}

func code(err error) core.Code {
	var e *core.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestOneAccountWaitsForItselfAndForNobodyElse(t *testing.T) {
	all := turns.New("searches", 2)
	first, err := all.Take(of(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := all.Take(of(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	late, cancel := context.WithTimeout(of(t, "a"), 1)
	defer cancel()
	if _, err := all.Take(late); code(err) != core.CodeRateLimited {
		t.Errorf("past its deadline: %v", err)
	}
	gone, cancel := context.WithCancel(of(t, "a"))
	cancel()
	if _, err := all.Take(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("of one who went: %v", err)
	}
	other, err := all.Take(of(t, "b"))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		leave, err := all.Take(of(t, "a"))
		if err == nil {
			leave()
		}
		got <- err
	}()
	first()
	if err := <-got; err != nil {
		t.Error(err)
	}
	second()
	other()
	if n := turns.Lines(all); n != 0 {
		t.Errorf("%d accounts are remembered", n)
	}
}
