package keyring

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"envapi/core"
)

// fakeKeyring serves what a test says.
type fakeKeyring struct {
	*httptest.Server
	fetches atomic.Int64
	mu      sync.Mutex
	answer  http.HandlerFunc
}

func startFake(t *testing.T, answer http.HandlerFunc) *fakeKeyring {
	t.Helper()
	f := &fakeKeyring{answer: answer}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.fetches.Add(1)
		f.mu.Lock()
		answer := f.answer
		f.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeKeyring) say(answer http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

func text(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// silence says nothing until the client gives up.
func silence(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// clock is a clock that tests move.
type clock struct{ moved atomic.Int64 }

func (c *clock) now() time.Time          { return testNow.Add(time.Duration(c.moved.Load())) }
func (c *clock) forward(d time.Duration) { c.moved.Add(int64(d)) }

// brisk is a timing under which tests need not wait, and in which nothing is
// fetched but at the start and for unknown keys.
var brisk = timing{fetch: 5 * time.Second, refresh: time.Hour, unknown: 10 * time.Second, retryMin: time.Hour, retryMax: time.Hour}

func startKeyring(t *testing.T, url string, how timing) (*Keyring, *clock) {
	t.Helper()
	c := &clock{}
	k, err := newKeyring(Config{JWKSURL: url, Issuer: testIssuer, Audience: testAudience, Stale: time.Hour, Now: c.now}, how)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return k, c
}

func await(t *testing.T, k *Keyring) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := k.Await(ctx); err != nil {
		t.Fatalf("the keys were not fetched: %v, %+v", err, k.Status())
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so within 10 s: %s", what)
		}
	}
}

// tokenOf gives a good token of a key, by ES256.
func tokenOf(key string) string {
	return compact("ES256", key, headerWith(m{"kid": key}), claimsWith(nil))
}

func code(err error) core.Code {
	if err == nil {
		return ""
	}
	return core.AsError(err).Code
}
