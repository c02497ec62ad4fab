package devkeyring

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"envapi/core"
	"envapi/internal/keyring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const issuer, audience = "the-issuer", "the-audience"

// start serves a stand-in until the test ends and gives its address.
func start(t *testing.T, k *Keyring) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l, err := Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- k.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Serve gave %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + l.Addr().String()
}

func newKeyring(t *testing.T, path string) *Keyring {
	t.Helper()
	key, err := LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	k, err := New(issuer, audience, key)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// verifier is envapi's own, fed with the stand-in's keys.
func verifier(t *testing.T, url string) *keyring.Keyring {
	t.Helper()
	v, err := keyring.New(keyring.Config{JWKSURL: url + "/.well-known/jwks.json", Issuer: issuer, Audience: audience, Stale: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := v.Await(ctx); err != nil {
		t.Fatalf("%v: %+v", err, v.Status())
	}
	return v
}

func TestItsTokensVerify(t *testing.T) {
	k := newKeyring(t, filepath.Join(t.TempDir(), "key"))
	v := verifier(t, start(t, k))
	master, err := v.Verify(t.Context(), k.Master().Raw)
	if err != nil || master.Account != "dev" || master.Profile != "default" || !reflect.DeepEqual(master.Scopes, core.AllScopes) {
		t.Errorf("the master token: %+v, %v", master, err)
	}
	want := core.Caller{Owner: core.Owner{Account: "bob", Profile: "work"}, Scopes: []core.Scope{core.ScopeExec}}
	token, err := k.Mint(Grant{Owner: want.Owner, Scopes: want.Scopes, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.Verify(t.Context(), token.Raw); err != nil || !isCaller(got, want, time.Hour) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// isCaller says whether a token's caller is who is wanted, until a lifetime from
// now; half a minute more or less is the time that the test takes, and the skew of
// clocks that keyring's verifier allows.
func isCaller(got, want core.Caller, lifetime time.Duration) bool {
	off := time.Until(got.Until) - lifetime
	want.Until = got.Until
	return reflect.DeepEqual(got, want) && off.Abs() <= time.Minute/2
}

func TestTokensOutliveARestartWithTheSameKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	old := newKeyring(t, path).Master().Raw
	if _, err := verifier(t, start(t, newKeyring(t, path))).Verify(t.Context(), old); err != nil {
		t.Error(err)
	}
	other := newKeyring(t, filepath.Join(t.TempDir(), "key"))
	if _, err := verifier(t, start(t, other)).Verify(t.Context(), old); err == nil {
		t.Error("another key accepts the token")
	}
}

func TestMintBoundsTheLifetime(t *testing.T) {
	k := newKeyring(t, filepath.Join(t.TempDir(), "key"))
	for _, lifetime := range []time.Duration{0, -time.Hour, MaxLifetime + time.Second} {
		if _, err := k.Mint(Grant{Lifetime: lifetime}); err == nil {
			t.Errorf("a token for %v was made", lifetime)
		}
	}
}

func TestTheKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	first, err := LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if again, err := LoadKey(path); err != nil || !again.Equal(first) {
		t.Errorf("another key was read: %v", err)
	}
	for _, text := range []string{"", "garbage", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadKey(path); err == nil || !strings.Contains(err.Error(), "remove the file") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWriteSecretReplacesInOneStep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "secret")
	if err := os.WriteFile(path, []byte("old and readable"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteSecret(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	info, err := os.Stat(path)
	if err != nil || string(text) != "new" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, %v", text, info.Mode(), err)
	}
	if err := WriteSecret(filepath.Join(dir, "no", "folder"), nil); err == nil {
		t.Error("wrote into no folder")
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files are left", len(left))
	}
}

func TestListenStaysOnLoopback(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		if l, err := Listen(t.Context(), addr); err == nil {
			_ = l.Close()
			t.Errorf("%s was accepted", addr)
		}
	}
}

// post asks for a token and gives the status and the body.
func post(t *testing.T, url, authorization, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/token", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

func TestTokensAreGivenToTheHolderOfTheMasterTokenAlone(t *testing.T) {
	k := newKeyring(t, filepath.Join(t.TempDir(), "key"))
	url := start(t, k)
	minted, err := k.Mint(Grant{Owner: core.Owner{Account: "bob", Profile: "default"}, Scopes: core.AllScopes, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for name, authorization := range map[string]string{
		"none": "", "empty": "Bearer ", "another token of ours": "Bearer " + minted.Raw, "a part": "Bearer " + k.Master().Raw[:20],
	} {
		if status, body := post(t, url, authorization, "{}"); status != http.StatusUnauthorized || strings.Contains(body, "eyJ") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

func TestTokensForTheAsking(t *testing.T) {
	k := newKeyring(t, filepath.Join(t.TempDir(), "key"))
	url := start(t, k)
	v := verifier(t, url)
	all := core.AllScopes
	for _, c := range []struct {
		body     string
		want     core.Caller
		lifetime time.Duration
	}{
		{``, core.Caller{Owner: core.Owner{Account: "dev", Profile: "default"}, Scopes: all}, 24 * time.Hour},
		{`{"sub":"bob","profile":"work"}`, core.Caller{Owner: core.Owner{Account: "bob", Profile: "work"}, Scopes: all}, 24 * time.Hour},
		{`{"scope":"exec","lifetime_ms":60000}`, core.Caller{Owner: core.Owner{Account: "dev", Profile: "default"}, Scopes: []core.Scope{core.ScopeExec}}, time.Minute},
		{`{"scope":""}`, core.Caller{Owner: core.Owner{Account: "dev", Profile: "default"}}, 24 * time.Hour},
	} {
		status, body := post(t, url, "Bearer "+k.Master().Raw, c.body)
		var answer struct {
			Token string `json:"access_token"`
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
			t.Errorf("%s: %d %s", c.body, status, body)
			continue
		}
		if got, err := v.Verify(t.Context(), answer.Token); err != nil || !isCaller(got, c.want, c.lifetime) {
			t.Errorf("%s: %+v, %v", c.body, got, err)
		}
	}
	for _, body := range []string{`{"lifetime_ms":86400001}`, `{"lifetime_ms":9223372036854775807}`, `{"lifetime_ms":0}`, `{"account":"x"}`, `[]`, `x`} {
		if status, text := post(t, url, "Bearer "+k.Master().Raw, body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
}

func TestOtherRoutesAreNotThere(t *testing.T) {
	url := start(t, newKeyring(t, filepath.Join(t.TempDir(), "key")))
	for _, path := range []string{"/", "/token", "/.well-known/", "/dev-key"} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}
