package mcpserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"envapi/tools"
)

// Handler serves streamable HTTP without sessions: every request stands alone,
// and the answer is one JSON message. The caller must be in the request's
// context. A client that goes away ends its wait, never the command that it
// waited for.
//
// Notifications are accepted and dropped, above all notifications/cancelled:
// mcp-go knows running requests by session and id, and without sessions the ids
// of different clients meet, so that one could end the waits of another.
func (s *Server) Handler() http.Handler {
	protocol := server.NewStreamableHTTPServer(s.mcp,
		server.WithStateLess(true),
		server.WithDisableStreaming(true),
		// Host and Origin are checked before this handler, for every route.
		server.WithDisableLocalhostProtection(true),
		server.WithStreamableHTTPLogger(s.Log))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hurried := s.pace(r.Context())
		m, status, err := readRequest(w, r)
		if err == nil {
			status, err = http.StatusBadRequest, checkVersion(r, m)
		}
		if err == nil && hurried != nil && m.method != string(mcp.MethodToolsCall) {
			status, err = tooSoon(w, hurried)
		}
		if err != nil {
			refuse(w, status, m.refusal(err))
			return
		}
		if !m.isRequest() {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		body, err := m.canonical()
		if err != nil {
			refuse(w, http.StatusInternalServerError, m.refusal(err))
			return
		}
		r = r.Clone(withHurried(withArguments(r.Context(), m.arguments), hurried))
		r.Header.Del(server.HeaderKeySessionID)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		protocol.ServeHTTP(w, r)
	})
}

// readRequest reads the message of a request, or says with which status it is
// refused.
func readRequest(w http.ResponseWriter, r *http.Request) (message, int, error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return message{}, http.StatusMethodNotAllowed,
			&wireError{mcp.INVALID_REQUEST, "cannot serve this method: send messages with POST; there are no sessions and no streams"}
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return message{}, http.StatusUnsupportedMediaType,
			&wireError{mcp.INVALID_REQUEST, "cannot read the body: send it with Content-Type application/json"}
	}
	if r.Header.Get("Content-Encoding") != "" {
		return message{}, http.StatusUnsupportedMediaType,
			&wireError{mcp.INVALID_REQUEST, "cannot read the body: send it without a Content-Encoding"}
	}
	var body []byte
	var err error = &http.MaxBytesError{Limit: tools.MaxInputBytes}
	if r.ContentLength <= tools.MaxInputBytes { // else it need not be sent to be refused
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, tools.MaxInputBytes))
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return message{}, http.StatusRequestEntityTooLarge,
			&wireError{mcp.INVALID_REQUEST, fmt.Sprintf("cannot take the body: it is larger than %d bytes", tools.MaxInputBytes)}
	}
	if err != nil {
		return message{}, http.StatusBadRequest, &wireError{mcp.PARSE_ERROR, "cannot read the body: it ended early"}
	}
	m, err := readMessage(body)
	return m, http.StatusBadRequest, err
}

// checkVersion refuses a version of the protocol that there is not. One from
// the era without sessions on is checked by mcp-go, together with the params
// that name it too; the first message only negotiates it.
func checkVersion(r *http.Request, m message) error {
	version := r.Header.Get(mcp.HeaderProtocolVersion)
	if version == "" || mcp.IsValidProtocolVersion(version) || mcp.IsModernProtocol(version) || m.method == string(mcp.MethodInitialize) {
		return nil
	}
	return &wireError{mcp.INVALID_REQUEST, fmt.Sprintf("cannot speak the version in the header %s: the versions are %s",
		mcp.HeaderProtocolVersion, strings.Join(mcp.ValidProtocolVersions, ", "))}
}

func refuse(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone; there is nobody to tell
}
