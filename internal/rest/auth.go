package rest

import (
	"net/http"
	"strings"

	"envapi/core"
)

// isToken68 says whether a text is written as RFC 6750 writes a bearer token.
func isToken68(text string) bool {
	body := strings.TrimRight(text, "=")
	for i := range len(body) {
		c := body[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && strings.IndexByte("._~+/-", c) < 0 {
			return false
		}
	}
	return body != ""
}

// authenticate says who asks.
func (h *handler) authenticate(r *http.Request) (core.Caller, error) {
	raw, err := requestToken(r)
	if err != nil {
		return core.Caller{}, err
	}
	return h.Verifier.Verify(r.Context(), raw)
}

// requestToken gives the token of a request. One that opens a WebSocket may have it
// among the subprotocols instead.
func requestToken(r *http.Request) (string, error) {
	if !isUpgrade(r) {
		return bearerToken(r.Header)
	}
	switch offered := offeredTokens(r.Header); {
	case len(offered) == 0:
		return bearerToken(r.Header)
	case len(offered) > 1 || len(r.Header.Values("Authorization")) > 0 || !isToken68(offered[0]):
		return "", core.Errorf(core.CodeUnauthenticated,
			"cannot read the token: send exactly one, in the Authorization header or as the subprotocol %sTOKEN", bearerProtocol)
	default:
		return offered[0], nil
	}
}

// bearerToken gives the token of the one Authorization header.
func bearerToken(header http.Header) (string, error) {
	values := header.Values("Authorization")
	if len(values) == 0 {
		return "", core.Errorf(core.CodeUnauthenticated,
			"there is no token: send one from keyring as \"Authorization: Bearer TOKEN\"")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || !isToken68(token) {
		return "", core.Errorf(core.CodeUnauthenticated,
			"cannot read the Authorization header: send exactly one, as \"Authorization: Bearer TOKEN\"")
	}
	return token, nil
}

// refuseQueryToken refuses a token where logs and histories would keep it.
func refuseQueryToken(r *http.Request) error {
	for name := range r.URL.Query() {
		switch strings.ToLower(name) {
		case "access_token", "token", "bearer_token":
			return core.Errorf(core.CodeInvalidArgument,
				"cannot take a token from the query, where logs would keep it: send it in the Authorization header").With("field", name)
		}
	}
	return nil
}

// challenge is the WWW-Authenticate header that goes with e, or "".
func challenge(e *core.Error, r *http.Request) string {
	switch {
	case e.Code == core.CodeInsufficientScope:
		scope, _ := e.Facts["scope"].(string)
		return `Bearer realm="envapi", error="insufficient_scope", scope="` + scope + `"`
	case e.Code != core.CodeUnauthenticated:
		return ""
	case len(r.Header.Values("Authorization")) == 0 && len(offeredTokens(r.Header)) == 0:
		return `Bearer realm="envapi"`
	default:
		return `Bearer realm="envapi", error="invalid_token"`
	}
}
