package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"envapi/internal/loopback"
)

// The bounds of the listener: it has few callers, each of whom asks seldom, and must not
// take from the service what that needs for its own.
const (
	maxConnections = 16
	maxScrapes     = 4
	scrapeBound    = 10 * time.Second
	headerTimeout  = 5 * time.Second
	writeTimeout   = 30 * time.Second
	maxHeaderBytes = 16 << 10
)

// Config is what a listener is made of.
type Config struct {
	Addr    string // host:port
	Version string // of the service
	Source  Source
	Log     *slog.Logger
}

// Listener serves GET /metrics, and nothing else.
type Listener struct {
	Addr string // where it listens, host:port

	server *http.Server
	served chan struct{} // closed when it does no more
}

// Listen serves until it is closed. It fails where it cannot listen.
func Listen(ctx context.Context, c Config) (*Listener, error) {
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on ENVAPI_METRICS_ADDR=%s: %w", c.Addr, err)
	}
	l := &Listener{
		Addr:   socket.Addr().String(),
		served: make(chan struct{}),
		server: &http.Server{
			Handler:           handler(c),
			ReadHeaderTimeout: headerTimeout,
			ReadTimeout:       headerTimeout,
			WriteTimeout:      writeTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
		},
	}
	// Who had its answer must not keep a place that the next one needs.
	l.server.SetKeepAlivesEnabled(false)
	go func() {
		defer close(l.served)
		err := l.server.Serve(netutil.LimitListener(socket, maxConnections))
		if !errors.Is(err, http.ErrServerClosed) {
			c.Log.Error("the listener for metrics ended", "error", err)
		}
	}()
	return l, nil
}

// Close ends it at once, with what is being answered.
func (l *Listener) Close() error {
	err := l.server.Close()
	<-l.served
	return err
}

// handler answers GET and HEAD of /metrics.
func handler(c Config) http.Handler {
	scrape := promhttp.HandlerFor(registry(c.Version, c.Source), promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError, // what can be told is
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeBound,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !hostAllowed(r):
			http.Error(w, "cannot answer for this Host", http.StatusForbidden)
		case r.URL.Path != "/metrics":
			http.Error(w, "there is only /metrics", http.StatusNotFound)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		default:
			scrape.ServeHTTP(w, r)
		}
	})
}

// hostAllowed refuses, at a loopback address, names of other machines: a web page in a
// browser of this machine may have made its own name resolve to it (DNS rebinding).
func hostAllowed(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return !ok || !loopback.Is(hostname(addr.String())) || loopback.Is(hostname(r.Host))
}

// hostname gives a host without its port and brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}
