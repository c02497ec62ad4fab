package rest

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"envapi/core"
	"envapi/internal/loopback"
)

// checkSite refuses what a browser sends on behalf of a web page that is not
// ours. A page may make its own name resolve to this service (DNS rebinding);
// then the Host header, or the Origin, is a name that is not ours.
func (h *handler) checkSite(r *http.Request) error {
	if !h.hostAllowed(r) {
		return core.Errorf(core.CodeOriginRefused,
			"cannot answer for this Host: use the service's own name, or add the name to the allowed hosts of the deployment")
	}
	if !h.originAllowed(r) {
		return core.Errorf(core.CodeOriginRefused,
			"cannot answer a web page of another origin: call from the service's own, or without an Origin header")
	}
	return nil
}

func (h *handler) hostAllowed(r *http.Request) bool {
	host := strings.ToLower(r.Host)
	if slices.Contains(h.hosts, host) || slices.Contains(h.hosts, hostname(host)) {
		return true
	}
	if onLoopback(r) {
		return loopback.Is(hostname(host))
	}
	// An address cannot be rebound, and probes use it.
	_, err := netip.ParseAddr(hostname(host))
	return err == nil || len(h.hosts) == 0
}

func (h *handler) originAllowed(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	origin, err := url.Parse(origins[0])
	if err != nil || len(origins) > 1 || origin.Host == "" {
		return false
	}
	host := strings.ToLower(origin.Host)
	return host == strings.ToLower(r.Host) || slices.Contains(h.hosts, host) || loopback.Is(hostname(host))
}

// knownHosts gives the names that the Host header may have, in lower case.
func knownHosts(allowed []string, publicURL string) []string {
	var hosts []string
	for _, host := range allowed {
		hosts = append(hosts, strings.ToLower(host))
	}
	if u, err := url.Parse(publicURL); err == nil && u.Host != "" {
		hosts = append(hosts, strings.ToLower(u.Host))
	}
	return hosts
}

// onLoopback says whether the request came in at a loopback address.
func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && loopback.Is(hostname(addr.String()))
}

// hostname gives a host without its port and brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}
