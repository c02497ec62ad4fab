package keyring

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"envapi/core"
)

func TestKeysAreFetchedAtTheStartAndServe(t *testing.T) {
	k, _ := startKeyring(t, startFake(t, text(200, allKeys())).URL, brisk)
	await(t, k)
	if _, err := k.Verify(t.Context(), tokenOf("p256")); err != nil {
		t.Error(err)
	}
	if s := k.Status(); !s.Verifies || s.LastError != "" || !s.Since.Equal(testNow) {
		t.Errorf("status %+v", s)
	}
}

func TestE8KeyringDownAtTheStartIsUnavailableNever401(t *testing.T) {
	fake := startFake(t, text(500, "down"))
	how := brisk
	how.retryMin, how.retryMax = time.Millisecond, 5*time.Millisecond
	k, _ := startKeyring(t, fake.URL, how)
	eventually(t, "three fetches failed", func() bool { return fake.fetches.Load() >= 3 })
	for name, raw := range map[string]string{"good": tokenOf("p256"), "bad": "x"} {
		_, err := k.Verify(t.Context(), raw)
		if code(err) != core.CodeUnavailable || core.AsError(err).Facts["retry_after_ms"] == nil {
			t.Errorf("%s token: %v", name, err)
		}
	}
	if s := k.Status(); s.Verifies || s.LastError != "keyring answered with status 500" {
		t.Errorf("status %+v", s)
	}
	fake.say(text(200, allKeys()))
	await(t, k)
	if _, err := k.Verify(t.Context(), tokenOf("p256")); err != nil {
		t.Errorf("after keyring came up: %v", err)
	}
}

func TestE8BadAnswersLeaveTheOldKeys(t *testing.T) {
	elsewhere := startFake(t, text(200, setOf(jwkOf("other", nil))))
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		words  string
	}{
		"no keys":           {text(200, `{"keys":[]}`), "keyring's answer holds no usable key"},
		"keys null":         {text(200, `{"keys":null}`), "keyring's answer holds no usable key"},
		"keys missing":      {text(200, `{}`), "keyring's answer is not a key set"},
		"keys twice":        {text(200, `{"keys":[],"keys":[]}`), "keyring's answer is not a key set"},
		"garbage":           {text(200, "<html>hello</html>"), "keyring's answer is not a key set"},
		"nothing":           {text(200, ""), "keyring's answer is not a key set"},
		"10 MB":             {text(200, `{"keys":[],"x":"`+strings.Repeat("x", 10<<20)+`"}`), "keyring's answer is too large"},
		"a redirect":        {http.RedirectHandler(elsewhere.URL, http.StatusFound).ServeHTTP, "keyring answered with status 302"},
		"an error":          {text(503, allKeys()), "keyring answered with status 503"},
		"no content":        {text(204, ""), "keyring answered with status 204"},
		"silence":           {silence, "keyring cannot be reached"},
		"a broken answer":   {brokenOff, "keyring's answer broke off"},
		"a symmetric key":   {text(200, setOf(m{"kty": "oct", "kid": "p256", "k": "AAAA"})), "keyring's answer holds no usable key"},
		"a key without kid": {text(200, setOf(jwkOf("other", m{"kid": ""}))), "keyring's answer holds no usable key"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := startFake(t, text(200, allKeys()))
			how := brisk
			how.refresh, how.retryMin, how.retryMax = time.Millisecond, time.Millisecond, time.Millisecond
			if name == "silence" {
				how.fetch = 200 * time.Millisecond
			}
			k, _ := startKeyring(t, fake.URL, how)
			await(t, k)
			fake.say(c.answer)
			eventually(t, "the fetch failed", func() bool { return k.Status().LastError == c.words })
			if _, err := k.Verify(t.Context(), tokenOf("p256")); err != nil {
				t.Errorf("with the old keys: %v", err)
			}
			if s := k.Status(); !s.Verifies {
				t.Errorf("status %+v", s)
			}
		})
	}
	if n := elsewhere.fetches.Load(); n != 0 {
		t.Errorf("a redirect was followed %d times", n)
	}
}

// brokenOff promises more than it sends.
func brokenOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(`{"keys":`))
}

func TestE8RequestsAreNotHeldUpByASilentKeyring(t *testing.T) {
	fake := startFake(t, text(200, allKeys()))
	how := brisk
	how.refresh = time.Millisecond
	k, _ := startKeyring(t, fake.URL, how)
	await(t, k)
	fake.say(silence)
	before := fake.fetches.Load()
	eventually(t, "a fetch hangs", func() bool { return fake.fetches.Load() > before })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := k.Verify(ctx, tokenOf("p256")); err != nil || ctx.Err() != nil {
		t.Errorf("%v, %v", err, ctx.Err())
	}
}

func TestE9AnUnknownKidAThousandTimesCausesOneFetchInTenSeconds(t *testing.T) {
	fake := startFake(t, text(200, setOf(jwkOf("p256", nil))))
	k, c := startKeyring(t, fake.URL, brisk)
	await(t, k)
	ask := func() {
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				raw := compact("ES256", "other", headerWith(m{"kid": fmt.Sprint("nobody-", i)}), claimsWith(nil))
				if _, err := k.Verify(t.Context(), raw); code(err) != core.CodeUnauthenticated {
					t.Errorf("got %v", err)
				}
			})
		}
		all.Wait()
	}
	ask()
	if n := fake.fetches.Load(); n != 2 { // that of the start and one
		t.Errorf("%d fetches", n)
	}
	c.forward(9 * time.Second)
	ask()
	if n := fake.fetches.Load(); n != 2 {
		t.Errorf("%d fetches before ten seconds were over", n)
	}
	c.forward(time.Second)
	ask()
	if n := fake.fetches.Load(); n != 3 {
		t.Errorf("%d fetches after ten seconds", n)
	}
}

func TestE9TheFetchForAnUnknownKidWaitsNoLongerThanItsCaller(t *testing.T) {
	fake := startFake(t, text(200, allKeys()))
	k, _ := startKeyring(t, fake.URL, brisk)
	await(t, k)
	fake.say(silence)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := k.Verify(ctx, tokenOf("other")); code(err) != core.CodeUnauthenticated {
		t.Errorf("got %v", err)
	}
	if d := time.Since(start); d > brisk.fetch/2 {
		t.Errorf("it took %v", d)
	}
	if _, err := k.Verify(t.Context(), tokenOf("p256")); err != nil {
		t.Errorf("a known key beside the hanging fetch: %v", err)
	}
}

func TestE9AnUnknownKidJoinsAFetchThatIsUnderWay(t *testing.T) {
	fake := startFake(t, text(200, allKeys()))
	how := brisk
	how.refresh = time.Millisecond
	k, _ := startKeyring(t, fake.URL, how)
	await(t, k)
	release := make(chan struct{})
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let) // the fake waits for its handlers
	var hanging atomic.Int64
	fake.say(func(w http.ResponseWriter, r *http.Request) {
		hanging.Add(1)
		<-release
		text(200, setOf(jwkOf("other", nil)))(w, r)
	})
	eventually(t, "a fetch hangs", func() bool { return hanging.Load() == 1 })
	answered := make(chan error, 1)
	go func() {
		_, err := k.Verify(t.Context(), tokenOf("other"))
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("answered before the fetch: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if n := hanging.Load(); n != 1 {
		t.Errorf("%d fetches at one time", n)
	}
	let()
	if err := <-answered; err != nil {
		t.Errorf("with the key that the fetch brought: %v", err)
	}
}

func TestE9KeyRotationWhileRequestsRun(t *testing.T) {
	fake := startFake(t, text(200, setOf(jwkOf("p256", nil))))
	k, _ := startKeyring(t, fake.URL, brisk)
	await(t, k)
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := k.Verify(t.Context(), tokenOf("p256")); err != nil {
					t.Errorf("the old key during the rotation: %v", err)
					return
				}
			}
		})
	}
	fake.say(text(200, setOf(jwkOf("p256", nil), jwkOf("other", nil))))
	if _, err := k.Verify(t.Context(), tokenOf("other")); err != nil {
		t.Errorf("the new key at its first use: %v", err)
	}
	close(stop)
	all.Wait()
}

func TestAKeyThatWasWithdrawnIsRefusedAfterTheNextFetch(t *testing.T) {
	fake := startFake(t, text(200, setOf(jwkOf("p256", nil), jwkOf("other", nil))))
	how := brisk
	how.refresh = time.Millisecond
	k, _ := startKeyring(t, fake.URL, how)
	await(t, k)
	fake.say(text(200, setOf(jwkOf("other", nil))))
	eventually(t, "the key is refused", func() bool {
		_, err := k.Verify(t.Context(), tokenOf("p256"))
		return code(err) == core.CodeUnauthenticated
	})
}

func TestE8KeyringDownWithKeysInHandServesUpToTheirAgeThen503(t *testing.T) {
	fake := startFake(t, text(200, allKeys()))
	k, c := startKeyring(t, fake.URL, brisk)
	await(t, k)
	fake.say(text(500, "down"))
	raw := compact("ES256", "p256", headerWith(nil), claimsWith(m{"exp": at(3 * time.Hour)}))
	c.forward(time.Hour)
	if _, err := k.Verify(t.Context(), raw); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	c.forward(time.Millisecond)
	for name, raw := range map[string]string{"good": raw, "unknown key": tokenOf("other"), "bad": "x"} {
		if _, err := k.Verify(t.Context(), raw); code(err) != core.CodeUnavailable {
			t.Errorf("%s token beyond the bound: %v", name, err)
		}
	}
	if s := k.Status(); s.Verifies || !s.Since.Equal(testNow.Add(time.Hour)) {
		t.Errorf("status %+v", s)
	}
}

func TestNewRefusesWhatWouldNotBeSafe(t *testing.T) {
	good := Config{JWKSURL: "https://keyring.test/jwks", Issuer: "i", Audience: "a", Stale: time.Hour}
	for name, spoil := range map[string]func(*Config){
		"no issuer":          func(c *Config) { c.Issuer = "" },
		"no audience":        func(c *Config) { c.Audience = "" },
		"no bound":           func(c *Config) { c.Stale = 0 },
		"no address":         func(c *Config) { c.JWKSURL = "" },
		"no TLS":             func(c *Config) { c.JWKSURL = "http://keyring.test/jwks" },
		"TLS of another":     func(c *Config) { c.JWKSURL = "http://localhost.evil.test/jwks" },
		"a file":             func(c *Config) { c.JWKSURL = "file:///etc/passwd" },
		"a password":         func(c *Config) { c.JWKSURL = "https://u:hunter2@keyring.test/jwks" },
		"only a path":        func(c *Config) { c.JWKSURL = "/jwks" },
		"a broken address":   func(c *Config) { c.JWKSURL = "https://[::1/hunter2" },
		"loopback in a name": func(c *Config) { c.JWKSURL = "http://127.0.0.1.evil.test/" },
	} {
		c := good
		spoil(&c)
		k, err := New(c)
		if err == nil {
			_ = k.Close()
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error repeats the address: %v", name, err)
		}
	}
	for _, ok := range []string{"http://127.0.0.1:9/jwks", "http://[::1]:9/jwks", "http://localhost:9/", "https://keyring.test"} {
		if err := CheckURL(ok); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
}

func TestCloseEndsAFetchThatHangs(t *testing.T) {
	fake := startFake(t, silence)
	k, _ := startKeyring(t, fake.URL, brisk)
	eventually(t, "the fetch hangs", func() bool { return fake.fetches.Load() == 1 })
	start := time.Now()
	_ = k.Close()
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("took %v", d)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := k.Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Await gave %v", err)
	}
}

func TestPausesGrowToTheirBound(t *testing.T) {
	s := &keySource{timing: usual}
	var pauses []time.Duration
	for _, failures := range []int{0, 1, 2, 3, 6, 1000} {
		s.current.Store(&snapshot{failures: failures})
		pauses = append(pauses, s.pause())
	}
	want := []time.Duration{5 * time.Minute, time.Second, 2 * time.Second, 4 * time.Second, 30 * time.Second, 30 * time.Second}
	if fmt.Sprint(pauses) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", pauses, want)
	}
}

// Closed between two fetches, the source once waited for one that nobody made.
func TestCloseAtAnyMomentReturns(t *testing.T) {
	fake := startFake(t, text(200, allKeys()))
	how := brisk
	how.refresh = 0
	for i := range 300 {
		k, _ := startKeyring(t, fake.URL, how)
		await(t, k)
		for range i % 50 {
			runtime.Gosched()
		}
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_ = k.Close()
		}()
		select {
		case <-closed:
		case <-time.After(30 * time.Second):
			t.Fatalf("round %d: Close does not return", i)
		}
	}
}
