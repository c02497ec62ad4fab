package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/coder/websocket"

	"envapi/core"
	"envapi/tools"
)

const (
	// subprotocol is what is spoken on an attached connection.
	subprotocol = "envapi.v1"
	// bearerProtocol begins the subprotocol in which a web page gives its token:
	// it can set no header, and a query would be logged.
	bearerProtocol = "envapi.bearer." //nolint:gosec // what stands before a secret
)

// attach gives what serves a route that is a WebSocket.
func (h *handler) attach(op tools.Operation) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		caller, _ := core.CallerFrom(r.Context())
		if err := caller.Require(op.Scope); err != nil {
			return err
		}
		if err := checkUpgrade(r); err != nil {
			return err
		}
		input, err := readInput(w, r, op)
		if err != nil {
			return err
		}
		attachment, err := op.Attach(r.Context(), h.Service, caller, input)
		if err != nil {
			return err
		}
		defer attachment.Close()
		// The origin was checked with that of every other request, see checkSite.
		// Compression is off: it costs memory for each connection, and lets one who
		// sees the lengths guess what is sent.
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
			Subprotocols: []string{subprotocol}, InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled,
		})
		if err != nil {
			return nil // it was answered
		}
		ctx, cancel := h.Service.Stream(r.Context(), caller)
		defer cancel()
		h.newViewer(conn, attachment).serve(ctx)
		return nil
	}
}

// checkUpgrade refuses what does not open a WebSocket that speaks our subprotocol.
// A client that offers none, as one that is not a web page may, speaks it too.
func checkUpgrade(r *http.Request) error {
	if !isUpgrade(r) || r.Method != http.MethodGet {
		return core.Errorf(core.CodeInvalidArgument, "cannot answer this with one message: open it as a WebSocket, over HTTP/1.1")
	}
	if offered := subprotocols(r.Header); len(offered) > 0 && !slices.Contains(offered, subprotocol) {
		return core.Errorf(core.CodeInvalidArgument, "cannot speak any of the subprotocols that are offered: offer %s", subprotocol)
	}
	return nil
}

// isUpgrade says whether a request opens a WebSocket.
func isUpgrade(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// subprotocols gives those that a client offers.
func subprotocols(header http.Header) []string {
	var offered []string
	for _, value := range header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(value, ",") {
			offered = append(offered, strings.TrimSpace(name))
		}
	}
	return offered
}

// offeredTokens gives the tokens among the subprotocols that are offered.
func offeredTokens(header http.Header) []string {
	var tokens []string
	for _, name := range subprotocols(header) {
		if token, ok := strings.CutPrefix(name, bearerProtocol); ok {
			tokens = append(tokens, token)
		}
	}
	return tokens
}
