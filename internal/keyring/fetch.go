package keyring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"envapi/internal/loopback"
)

const (
	// maxSetBytes bounds the key set: hundreds of keys.
	maxSetBytes = 1 << 20
	// maxHeaderBytes bounds the header of keyring's answer.
	maxHeaderBytes = 64 << 10
)

// A fetchError is why the keys could not be fetched: public words, and the
// private cause where there is one.
type fetchError struct {
	words string
	cause error
}

func (e *fetchError) Error() string {
	if e.cause == nil {
		return e.words
	}
	return e.words + ": " + e.cause.Error()
}

func (e *fetchError) Unwrap() error { return e.cause }

// publicWords gives what anyone may know of a failed fetch.
func publicWords(err error) string {
	var f *fetchError
	if errors.As(err, &f) {
		return f.words
	}
	return "keyring cannot be reached"
}

// CheckURL fails unless raw is an address that keys may be fetched from:
// absolute, with TLS unless it is on this host, and without a password. The
// error does not repeat raw, which may hold one.
func CheckURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Hostname() == "" || (u.Scheme != "https" && u.Scheme != "http"):
		return errors.New("not an absolute http or https address")
	case u.User != nil:
		return errors.New("must not hold a user name or password")
	case u.Fragment != "":
		return errors.New("must not have a fragment")
	case u.Scheme == "http" && !loopback.Is(u.Hostname()):
		return errors.New("must be https, except on a loopback address")
	}
	return nil
}

// newClient makes the client for the one address of the key set. It follows no
// redirect, which could lead anywhere, and keeps no connection, since minutes
// pass between two fetches.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			MaxResponseHeaderBytes: maxHeaderBytes,
			DisableKeepAlives:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fetchKeys fetches and reads the key set at an address.
func fetchKeys(ctx context.Context, client *http.Client, address string) (map[string]publicKey, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, &fetchError{"keyring cannot be reached", err}
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, &fetchError{"keyring cannot be reached", err}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, &fetchError{fmt.Sprintf("keyring answered with status %d", resp.StatusCode), nil}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxSetBytes+1))
	if err != nil {
		return nil, &fetchError{"keyring's answer broke off", err}
	}
	if len(body) > maxSetBytes {
		return nil, &fetchError{"keyring's answer is too large", nil}
	}
	return parseSet(body)
}

// parseSet reads a key set. Keys that cannot be used are left out, and those
// that share an id, since it would not say which is meant. A set without a
// usable key is an error: keyring always has one.
func parseSet(body []byte) (map[string]publicKey, error) {
	set, err := parseObject(body)
	if err != nil {
		return nil, &fetchError{"keyring's answer is not a key set", err}
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(set["keys"], &raws); err != nil {
		return nil, &fetchError{"keyring's answer is not a key set", err}
	}
	keys, count := map[string]publicKey{}, map[string]int{}
	for _, raw := range raws {
		if key, err := parseKey(raw); err == nil {
			keys[key.kid] = key
			count[key.kid]++
		}
	}
	for kid, n := range count {
		if n > 1 {
			delete(keys, kid)
		}
	}
	if len(keys) == 0 {
		return nil, &fetchError{"keyring's answer holds no usable key", nil}
	}
	return keys, nil
}
