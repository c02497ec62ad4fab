package devkeyring

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"envapi/core"
)

// maxBodyBytes bounds what POST /token reads.
const maxBodyBytes = 16 << 10

// Listen opens addr, which must be on this machine alone.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		_ = l.Close()
		return nil, fmt.Errorf("cannot listen on %s: the stand-in for keyring makes tokens for anyone, so it must stay on a loopback address", addr)
	}
	return l, nil
}

// Serve answers on a listener until the context ends: the key set at
// /.well-known/jwks.json and, for the holder of the master token, new tokens at
// POST /token.
func (k *Keyring) Serve(ctx context.Context, l net.Listener) error {
	set, err := k.keySet()
	if err != nil {
		return err
	}
	srv := &http.Server{
		Handler:           k.handler(set),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       time.Minute,
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}

func (k *Keyring) handler(set []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /.well-known/jwks.json":
			w.Header().Set("Content-Type", "application/jwk-set+json")
			_, _ = w.Write(set)
		case "POST /token":
			k.serveToken(w, r)
		default:
			http.Error(w, "there are GET /.well-known/jwks.json and POST /token", http.StatusNotFound)
		}
	})
}

// serveToken makes a token. That the master token must come in a header keeps
// off other users of the machine, and web pages, which cannot set that header.
func (k *Keyring) serveToken(w http.ResponseWriter, r *http.Request) {
	given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if subtle.ConstantTimeCompare([]byte(given), []byte(k.master.Raw)) != 1 {
		http.Error(w, "send the token that was printed at the start as Authorization: Bearer TOKEN", http.StatusUnauthorized)
		return
	}
	grant, err := readGrant(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t, err := k.Mint(grant)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": t.Raw, "token_type": "Bearer", "expires_in": int64(time.Until(t.Expires).Seconds()),
	})
}

// readGrant reads what token is asked for. What is left out is that of the
// master token.
func readGrant(body io.Reader) (Grant, error) {
	in := struct {
		Sub        string  `json:"sub"`
		Profile    string  `json:"profile"`
		Scope      *string `json:"scope"`
		LifetimeMS int64   `json:"lifetime_ms"`
	}{Sub: "dev", Profile: "default", LifetimeMS: MaxLifetime.Milliseconds()}
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil && !errors.Is(err, io.EOF) {
		return Grant{}, fmt.Errorf("cannot read the body: %w; it is a JSON object with sub, profile, scope and lifetime_ms", err)
	}
	g := Grant{
		Owner:    core.Owner{Account: in.Sub, Profile: in.Profile},
		Scopes:   core.AllScopes,
		Lifetime: time.Duration(min(in.LifetimeMS, MaxLifetime.Milliseconds()+1)) * time.Millisecond,
	}
	if in.Scope != nil {
		g.Scopes = nil
		for _, s := range strings.Fields(*in.Scope) {
			g.Scopes = append(g.Scopes, core.Scope(s))
		}
	}
	return g, nil
}
