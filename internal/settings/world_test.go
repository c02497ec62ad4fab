package settings

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"envapi/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a client before a settings-api that the test plays, with a clock that
// it moves and a store in memory.
type world struct {
	t *testing.T
	*Client
	config Config
	server *httptest.Server
	log    *lines

	mu     sync.Mutex
	at     time.Time
	play   http.HandlerFunc
	asked  []*http.Request
	kept   map[string]string
	writes int
	broken error // what the store fails with
}

func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	w := &world{t: t, at: time.Unix(1_800_000_000, 0), kept: map[string]string{}, log: &lines{}}
	w.server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked = append(w.asked, r)
		play := w.play
		w.mu.Unlock()
		play(out, r)
	}))
	t.Cleanup(w.server.Close)
	w.config = Config{URL: w.server.URL, Store: w, Log: slog.New(slog.NewTextHandler(w.log, nil)), Now: w.now}
	for _, c := range change {
		c(&w.config)
	}
	w.start()
	t.Cleanup(func() { must(t, w.Close()) })
	return w
}

// start makes a client of what there is, as after a restart.
func (w *world) start() {
	w.t.Helper()
	c, err := New(w.config)
	must(w.t, err)
	w.Client = c
}

func (w *world) restart() {
	w.t.Helper()
	must(w.t, w.Close())
	w.start()
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

// answers has settings-api play a part from now on.
func (w *world) answers(play http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.play = play
}

// says answers with a text and an ETag, or 304 where that is known.
func says(text, tag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if tag != "" {
			w.Header().Set("ETag", tag)
		}
		if tag != "" && r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(text))
	}
}

// fails answers with a status.
func fails(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// questions gives how many there were since the last time.
func (w *world) questions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.asked)
	w.asked = nil
	return n
}

func (w *world) Settings(_ context.Context, account string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kept[account], w.broken
}

func (w *world) KeepSettings(_ context.Context, account, text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return w.broken
	}
	w.kept[account] = text
	w.writes++
	return nil
}

func (w *world) breakStore(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = err
}

var errBroken = errors.New("the store is broken")

func owner(account string, profile ...string) core.Owner {
	return core.Owner{Account: account, Profile: strings.Join(append(profile, "default")[:1], "")}
}

// times are idle times in milliseconds; -1 is that nothing is asked for.
type times struct {
	shell, environment int64
	never              bool
}

var (
	none  = times{-1, -1, false}
	never = times{-1, -1, true}
)

func timesOf(i core.IdleTimes) times {
	ms := func(d *time.Duration) int64 {
		if d == nil {
			return -1
		}
		return d.Milliseconds()
	}
	return times{ms(i.Shell), ms(i.Environment), i.Never}
}

func (w *world) want(o core.Owner, want times) {
	w.t.Helper()
	if got := timesOf(w.Of(w.t.Context(), o)); got != want {
		w.t.Errorf("of %s got %v, want %v", o, got, want)
	}
}

func (w *world) wantAsked(n int) {
	w.t.Helper()
	if got := w.questions(); got != n {
		w.t.Errorf("it was asked %d times, want %d", got, n)
	}
}

// lines is a log that can be counted.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (w *world) wantLogged(level, text string, times int) {
	w.t.Helper()
	n := 0
	for line := range strings.Lines(w.log.text()) {
		if strings.Contains(line, "level="+level) && strings.Contains(line, text) {
			n++
		}
	}
	if n != times {
		w.t.Errorf("%q was logged %d times at %s, want %d:\n%s", text, n, level, times, w.log.text())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
