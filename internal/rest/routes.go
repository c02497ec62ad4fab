package rest

import (
	"net/http"
	"path"
	"strings"

	"envapi/core"
	"envapi/tools"
)

// endpoint serves one route.
type endpoint struct {
	name    string // for the log
	pattern string // of the mux
	serve   func(w http.ResponseWriter, r *http.Request) error
	handler *handler
}

// ServeHTTP serves the route; an error becomes the answer.
func (e endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a, ok := w.(*answer); ok {
		a.operation = e.name
	}
	if err := e.serve(w, r); err != nil {
		e.handler.fail(w, r, err)
	}
}

// The probes, by their names in the log.
const (
	opHealthz = "healthz"
	opReady   = "ready"
)

// fixedRoutes are all the routes that are no operation.
func (h *handler) fixedRoutes(document []byte) []endpoint {
	routes := []endpoint{
		{opHealthz, "GET /healthz", h.healthz, h},
		{opReady, "GET /ready", h.ready, h},
		{"openapi", "GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) error {
			writeRaw(w, http.StatusOK, "application/json", document)
			return nil
		}, h},
	}
	if h.MCP != nil {
		routes = append(routes, endpoint{"mcp", "POST /mcp", func(w http.ResponseWriter, r *http.Request) error {
			h.MCP.ServeHTTP(w, r)
			return nil
		}, h})
	}
	return routes
}

// route finds what answers a request, once it may be answered at all.
func (h *handler) route(a *answer, r *http.Request) error {
	if r.URL.Path != "/healthz" {
		if err := h.checkSite(r); err != nil {
			return err
		}
	}
	if err := refuseQueryToken(r); err != nil {
		return err
	}
	if guarded(r.URL.Path) {
		caller, err := h.authenticate(r)
		if err != nil {
			return err
		}
		a.account = caller.Account
		if err := h.pace(r, caller.Account); err != nil {
			return err
		}
		leave, err := h.crowd.enter(caller.Account, h.atOnce)
		if err != nil {
			return err
		}
		defer leave()
		r = r.WithContext(core.WithCaller(r.Context(), caller))
	}
	if !h.matches(r, r.Method) {
		return h.unmatched(a, r)
	}
	h.mux.ServeHTTP(a, r)
	return nil
}

// pace counts a request of an account, which may have come too soon. One of MCP is
// counted by the door behind it, which refuses in words of its own.
func (h *handler) pace(r *http.Request, account string) error {
	if h.Pace == nil || h.MCP != nil && r.Method == http.MethodPost && r.URL.Path == "/mcp" {
		return nil
	}
	return h.Pace(account)
}

// guarded says whether nothing at all is said about a path without a token.
func guarded(p string) bool {
	p = path.Clean(p)
	return p == "/mcp" || p == "/v1" || strings.HasPrefix(p, "/v1/") || strings.HasPrefix(p, "/mcp/")
}

// matches says whether there is a route for the request's path and a method.
// A path that the mux would redirect to its cleaned form has none.
func (h *handler) matches(r *http.Request, method string) bool {
	if path.Clean(r.URL.Path) != r.URL.Path {
		return false
	}
	probe := r.WithContext(r.Context())
	probe.Method = method
	_, pattern := h.mux.Handler(probe)
	return pattern != ""
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
}

// unmatched says whether a path has no route, or none for the method.
func (h *handler) unmatched(w http.ResponseWriter, r *http.Request) error {
	var allowed []string
	for _, method := range methods {
		if h.matches(r, method) {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		return core.Errorf(core.CodeNotFound, "there is no such route: /openapi.json lists the ones that exist")
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return core.Errorf(core.CodeMethodNotAllowed, "cannot use this method here: use one of %s", strings.Join(allowed, ", "))
}

func (h *handler) healthz(w http.ResponseWriter, _ *http.Request) error {
	writeRaw(w, http.StatusOK, "application/json", []byte(`{"status":"ok"}`))
	return nil
}

func (h *handler) ready(w http.ResponseWriter, r *http.Request) error {
	readiness := h.Ready(r.Context())
	status := http.StatusOK
	if readiness.Status != StatusReady {
		status = http.StatusServiceUnavailable
	}
	return writeJSON(w, status, readiness)
}

func writeJSON(w http.ResponseWriter, status int, value any) error {
	body, err := tools.Encode(value)
	if err != nil {
		return err
	}
	writeRaw(w, status, "application/json", body)
	return nil
}
