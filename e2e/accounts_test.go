package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"envapi/internal/testbin"
)

// standIn is a running devkeyring.
type standIn struct{ url, token string }

var (
	keyringURL   = regexp.MustCompile(`ENVAPI_KEYRING_URL=(http://\S+)`)
	keyringToken = regexp.MustCompile(`\b(eyJ[\w-]+\.[\w-]+\.[\w-]+)`)
)

func startKeyring(t *testing.T) standIn {
	t.Helper()
	said := &buffer{}
	cmd := exec.Command(testbin.Path(t, "devkeyring"), "-addr", "127.0.0.1:0")
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	var k standIn
	err := eventually(func() error {
		url, token := keyringURL.FindStringSubmatch(said.String()), keyringToken.FindStringSubmatch(said.String())
		if url == nil || token == nil {
			return fmt.Errorf("it names no address and token: %s", said)
		}
		k = standIn{url[1], token[1]}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// mint gets a token for an account and a profile.
func (k standIn) mint(t *testing.T, grant object) string {
	t.Helper()
	body, err := json.Marshal(grant)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.url+"/token", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+k.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var minted struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&minted); err != nil || minted.Token == "" {
		t.Fatalf("the stand-in gave %s %v", resp.Status, err)
	}
	return minted.Token
}

func TestD20WhatBelongsToAnotherIsAsIfItNeverExisted(t *testing.T) {
	t.Parallel()
	k := startKeyring(t)
	s := start(t, config{keyring: true, env: map[string]string{"ENVAPI_KEYRING_URL": k.url}})
	alice := rest{s.url, k.mint(t, object{"sub": "alice"})}
	p := place{alice, as[struct{ ID string }](t, alice.must(t, "create_environment", object{"idempotency_key": "k"})).ID}
	c := p.exec(t, object{"command": "echo secret", "idempotency_key": "k"})

	for name, grant := range map[string]object{
		"another account":                     {"sub": "bob"},
		"another profile of the same account": {"sub": "alice", "profile": "work"},
	} {
		t.Run(name, func(t *testing.T) {
			other := rest{s.url, k.mint(t, grant)}
			for _, operation := range []string{"get_environment", "update_environment", "reset_environment", "delete_environment", "exec"} {
				sameRefusal(t, other, operation, "environment_id", p.id, "env_aaaaaaaaaaaaaaaaaaaaaaaaaa")
			}
			for _, operation := range []string{"get_command", "read_output", "signal_command"} {
				sameRefusal(t, other, operation, "command_id", c.ID, "cmd_aaaaaaaaaaaaaaaaaaaaaaaaaa")
			}
			for _, operation := range []string{"list_environments", "list_commands"} {
				if items := other.must(t, operation, object{})["items"].([]any); len(items) != 0 {
					t.Errorf("%s shows %v", operation, items)
				}
			}
			made := as[struct{ ID string }](t, other.must(t, "create_environment", object{"idempotency_key": "k"}))
			if made.ID == p.id {
				t.Error("an idempotency key reaches across owners")
			}
		})
	}
	if got := p.sh(t, "echo alive"); got != "alive\n" {
		t.Errorf("afterwards the environment says %q", got)
	}
}

// sameRefusal asks for what is another's and for what never was, and wants the
// same answer but for the id.
func sameRefusal(t *testing.T, r rest, operation, field, real, invented string) {
	t.Helper()
	ask := func(id string) string {
		in := object{field: id}
		if operation == "exec" {
			in["command"] = "true"
		}
		return strings.ReplaceAll(r.refuse(t, "not_found", operation, in).Error(), id, "ID")
	}
	if theirs, never := ask(real), ask(invented); theirs != never {
		t.Errorf("%s: another's gives %q, what never was gives %q", operation, theirs, never)
	}
}

func TestATokenPermitsWhatItsScopesSay(t *testing.T) {
	t.Parallel()
	k := startKeyring(t)
	s := start(t, config{keyring: true, env: map[string]string{"ENVAPI_KEYRING_URL": k.url}})
	reader := rest{s.url, k.mint(t, object{"sub": "alice", "scope": "environments:read"})}
	reader.must(t, "list_environments", object{})
	if p := reader.refuse(t, "insufficient_scope", "create_environment", object{}); p.Status != http.StatusForbidden {
		t.Errorf("refused with %v", p)
	}
	for name, token := range map[string]string{"no token": "", "garbage": "x.y.z", "altered": k.token[:len(k.token)-4] + "AAAA"} {
		if p := (rest{s.url, token}).refuse(t, "unauthenticated", "list_environments", object{}); p.Status != http.StatusUnauthorized {
			t.Errorf("%s: refused with %v", name, p)
		}
	}
	if status, _, err := s.probe(context.Background(), "/v1/nowhere"); err != nil || status != http.StatusUnauthorized {
		t.Errorf("an unknown route without a token: %d %v", status, err)
	}
}
