// Package devsettings stands in for settings-api on a machine of a developer and in
// tests: it holds the settings of accounts in memory and serves them.
//
// It checks nothing of them, so that what envapi makes of odd ones can be tried. It
// protects nothing, and is for loopback addresses only.
package devsettings

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// maxBodyBytes bounds the settings of an account that PUT takes.
const maxBodyBytes = 1 << 20

// Server holds settings by account. Its methods may be called from many goroutines.
type Server struct {
	token string // that GET must come with; "" for none

	mu       sync.Mutex
	settings map[string]string
	away     bool
}

// New makes a Server without settings. With a token, it is asked with that or in vain.
func New(token string) *Server { return &Server{token: token, settings: map[string]string{}} }

// Set gives an account its settings, as the text that is answered.
func (s *Server) Set(account, settings string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings[account] = settings
}

// Unset takes the settings of an account away.
func (s *Server) Unset(account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.settings, account)
}

// Away has it answer nobody but with 503, or again.
func (s *Server) Away(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// Listen opens addr, which must be on this machine alone.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		_ = l.Close()
		return nil, fmt.Errorf("cannot listen on %s: the stand-in for settings-api takes settings from anyone, so it must stay on a loopback address", addr)
	}
	return l, nil
}

// Serve answers on a listener until the context ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute,
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}

// ServeHTTP answers GET, PUT and DELETE of /v1/accounts/{account}/settings.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	account, ok := accountOf(r.URL)
	switch {
	case s.isAway():
		fail(w, http.StatusServiceUnavailable, "it is away")
	case s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token:
		fail(w, http.StatusUnauthorized, "send the token as Authorization: Bearer TOKEN")
	case !ok:
		fail(w, http.StatusBadRequest, "there is only /v1/accounts/{account}/settings")
	case r.Method == http.MethodGet:
		s.give(w, r, account)
	case r.Method == http.MethodPut:
		s.take(w, r, account)
	case r.Method == http.MethodDelete:
		s.Unset(account)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "GET, PUT, DELETE")
		fail(w, http.StatusMethodNotAllowed, "use GET, PUT or DELETE")
	}
}

// accountOf gives the account that a path names, in which / is written %2F.
func accountOf(u *url.URL) (string, bool) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), "/v1/accounts/")
	name, ok2 := strings.CutSuffix(rest, "/settings")
	account, err := url.PathUnescape(name)
	return account, ok && ok2 && err == nil && account != "" && !strings.Contains(name, "/")
}

func (s *Server) isAway() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away
}

func (s *Server) give(w http.ResponseWriter, r *http.Request, account string) {
	s.mu.Lock()
	text, ok := s.settings[account]
	s.mu.Unlock()
	if !ok {
		fail(w, http.StatusNotFound, "nothing is set")
		return
	}
	sum := sha256.Sum256([]byte(text))
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, text)
}

func (s *Server) take(w http.ResponseWriter, r *http.Request, account string) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		fail(w, http.StatusBadRequest, "the body cannot be read")
		return
	}
	s.Set(account, string(text))
	w.WriteHeader(http.StatusNoContent)
}

func fail(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "{\"status\": %d, \"detail\": %q}\n", status, detail)
}
