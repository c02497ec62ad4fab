package settings

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"envapi/core"
)

const both = `{"shell_idle_ms": 60000, "environment_idle_ms": 3600000}`

func TestWhatIsAskedForIsGiven(t *testing.T) {
	w := newWorld(t)
	w.answers(says(`{"shell_idle_ms": 60000, "environment_idle_ms": 3600000, "theme": {"dark": true},
		"profiles": {"work": {"shell_idle_ms": 1}, "play": {"environment_idle_ms": null}, "idle": null}}`, ""))
	w.want(owner("alice"), times{60000, 3600000, false})
	w.want(owner("alice", "work"), times{1, 3600000, false})
	w.want(owner("alice", "play"), times{60000, 3600000, false})
	w.want(owner("alice", "idle"), times{60000, 3600000, false})
	w.wantAsked(1)
	w.answers(says(`{"shell_idle_ms": null}`, ""))
	w.want(owner("bob"), none)
	w.answers(says(`{"environment_idle_ms": 5, "profiles": {"default": {"shell_idle_ms": 7}}}`, ""))
	w.want(owner("carol"), times{7, 5, false})
	w.want(owner("carol", "work"), times{-1, 5, false})
}

func TestItIsAskedAgainAfterFiveMinutesAndByETag(t *testing.T) {
	w := newWorld(t)
	w.answers(says(both, `"one"`))
	w.want(owner("alice"), times{60000, 3600000, false})
	w.pass(fresh - time.Second)
	w.want(owner("alice"), times{60000, 3600000, false})
	w.wantAsked(1)
	w.pass(time.Second)
	w.want(owner("alice"), times{60000, 3600000, false})
	w.mu.Lock()
	if len(w.asked) != 1 || w.asked[0].Header.Get("If-None-Match") != `"one"` || w.asked[0].Header.Get("Accept") != "application/json" {
		t.Errorf("asked %v", w.asked)
	}
	w.mu.Unlock()
	w.pass(fresh - time.Second) // a 304 makes it fresh as an answer does
	w.want(owner("alice"), times{60000, 3600000, false})
	w.wantAsked(1)
	w.answers(says(`{"shell_idle_ms": 5}`, `"two"`))
	w.pass(time.Second)
	w.want(owner("alice"), times{5, -1, false})
	if w.writes != 2 {
		t.Errorf("it was kept %d times: what did not change need not be", w.writes)
	}
}

func TestKnownAsksNobody(t *testing.T) {
	w := newWorld(t)
	w.answers(says(both, ""))
	if got := timesOf(w.Known(t.Context(), owner("alice"))); got != never {
		t.Errorf("before: %v", got)
	}
	w.wantAsked(0)
	w.want(owner("alice"), times{60000, 3600000, false})
	w.pass(24 * time.Hour)
	w.questions()
	if got := timesOf(w.Known(t.Context(), owner("alice"))); got != (times{60000, 3600000, false}) {
		t.Errorf("after: %v", got)
	}
	w.wantAsked(0)
}

func TestAnOutageFromTheFirstMomentEndsNothing(t *testing.T) {
	w := newWorld(t)
	w.answers(fails(http.StatusServiceUnavailable))
	w.want(owner("alice"), never)
	w.want(owner("bob"), never)
	w.want(owner("alice", "work"), never)
	w.wantAsked(1) // about nobody else for a while
	w.wantLogged("WARN", "does not answer", 1)
	w.pass(pause)
	w.answers(says(both, ""))
	w.want(owner("bob"), times{60000, 3600000, false})
	w.want(owner("alice"), times{60000, 3600000, false})
	w.wantAsked(2)
	w.wantLogged("INFO", "answers again", 0)
	w.pass(fresh)
	w.want(owner("bob"), times{60000, 3600000, false})
	w.wantLogged("INFO", "answers again", 1)
}

// It may refuse every other question, as where it limits how often it is asked.
func TestEachKindOfRefusalIsSaidOnceUntilItIsOver(t *testing.T) {
	w := newWorld(t)
	met := times{60000, 3600000, false}
	for i := range 20 {
		w.answers(fails(http.StatusTooManyRequests))
		w.want(owner(fmt.Sprint("refused", i)), never)
		w.pass(pause)
		w.answers(says(both, ""))
		w.want(owner(fmt.Sprint("met", i)), met)
		w.pass(fresh - 2*pause)
	}
	w.wantLogged("WARN", "status 429", 1)
	w.wantLogged("INFO", "answers again", 0)
	for i := range 3 { // another kind is another thing to mend
		w.answers(fails(http.StatusUnauthorized))
		w.want(owner(fmt.Sprint("unknown", i)), never)
		w.pass(pause)
	}
	w.wantLogged("WARN", "status 401", 1)
	w.answers(says(both, ""))
	w.pass(fresh)
	w.want(owner("alice"), met)
	w.wantLogged("INFO", "answers again", 1)
	w.answers(fails(http.StatusTooManyRequests))
	w.want(owner("bob"), never)
	w.wantLogged("WARN", "status 429", 2)
}

func TestInAnOutageTheLastKnownHolds(t *testing.T) {
	w := newWorld(t)
	w.answers(says(both, `"one"`))
	w.want(owner("alice"), times{60000, 3600000, false})
	w.answers(fails(http.StatusNotFound))
	w.want(owner("bob"), none)
	w.questions()
	w.answers(fails(http.StatusInternalServerError))
	for i := range 10 {
		w.pass(fresh)
		w.want(owner("alice"), times{60000, 3600000, false})
		w.want(owner("bob"), none)
		w.want(owner("carol"), never)
		w.wantAsked(1)
		if i == 5 {
			w.restart()
		}
	}
	w.wantLogged("WARN", "does not answer", 2) // once, and once after the restart
	w.server.Close()
	w.pass(fresh)
	w.want(owner("alice"), times{60000, 3600000, false})
	w.want(owner("carol"), never)
}

func TestARestartInAnOutageForgetsNothing(t *testing.T) {
	w := newWorld(t)
	w.answers(says(`{"shell_idle_ms": 60000, "secret": "hunter2", "profiles": {"work": {"environment_idle_ms": 9, "secret": "hunter2"}}}`, `"one"`))
	w.want(owner("alice"), times{60000, -1, false})
	if text := w.kept["alice"]; strings.Contains(text, "hunter2") || strings.Contains(text, "secret") {
		t.Errorf("kept is %s", text)
	}
	w.answers(fails(http.StatusBadGateway))
	w.restart()
	if got := timesOf(w.Known(t.Context(), owner("alice"))); got != (times{60000, -1, false}) {
		t.Errorf("known is %v", got)
	}
	w.want(owner("alice"), times{60000, -1, false})
	w.want(owner("alice", "work"), times{60000, 9, false})
	w.questions()
	w.answers(says("", `"one"`)) // a 304, since it is asked with the tag that was kept
	w.pass(pause)
	w.want(owner("alice", "work"), times{60000, 9, false})
	w.wantAsked(1)
	w.pass(fresh)
	w.want(owner("alice", "work"), times{60000, 9, false})
	w.wantLogged("INFO", "answers again", 1)
}

func TestWhatTheStoreHoldsIsReadAsStrictly(t *testing.T) {
	w := newWorld(t)
	w.answers(fails(http.StatusBadGateway))
	for i, text := range []string{"x", "null", "[]", `{"shell_idle_ms":-1}`, `{"shell_idle_ms":"5"}`, `{"profiles":7}`} {
		account := fmt.Sprint("somebody ", i)
		w.kept[account] = text
		w.want(owner(account), never)
	}
}

func TestAStoreThatFailsIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	w.kept["alice"] = `{"shell_idle_ms":5}`
	w.answers(fails(http.StatusBadGateway))
	w.breakStore(errBroken)
	w.want(owner("alice"), never)
	w.breakStore(nil)
	w.want(owner("alice"), times{5, -1, false})

	w.breakStore(errBroken)
	w.answers(says(both, `"one"`))
	w.pass(fresh)
	w.want(owner("alice"), times{60000, 3600000, false})
	w.wantLogged("WARN", "cannot keep", 1)
	w.breakStore(nil)
	w.pass(fresh)
	w.want(owner("alice"), times{60000, 3600000, false}) // by a 304
	if !strings.Contains(w.kept["alice"], "3600000") {
		t.Errorf("kept is %s", w.kept["alice"])
	}
}

func TestNothingAskedForIsAnAnswer(t *testing.T) {
	w := newWorld(t)
	w.answers(fails(http.StatusNotFound))
	w.want(owner("alice"), none)
	w.want(owner("alice"), none)
	w.wantAsked(1)
	w.answers(fails(http.StatusBadGateway))
	w.restart()
	w.want(owner("alice"), none)
}

func TestA404ForgetsWishesOnlyInJSON(t *testing.T) {
	w := newWorld(t)
	w.answers(says(both, ""))
	w.want(owner("alice"), times{60000, 3600000, false})
	w.answers(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "404 page not found", http.StatusNotFound) })
	w.pass(fresh)
	w.want(owner("alice"), times{60000, 3600000, false})
	w.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
	})
	w.pass(fresh)
	w.want(owner("alice"), none)
}

func TestAnAnswerThatCannotBeUsedConcernsOneAccount(t *testing.T) {
	w := newWorld(t)
	w.answers(func(out http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "alice") {
			says(`{"shell_idle_ms": -5}`, "")(out, r)
			return
		}
		says(both, "")(out, r)
	})
	w.want(owner("alice"), never)
	w.want(owner("bob"), times{60000, 3600000, false})
	w.wantAsked(2)
	w.wantLogged("WARN", "its shell_idle_ms is -5: it must be a whole number from 1 to", 1)
	w.wantLogged("WARN", "does not answer", 0)
	for range 10 { // it is asked about more and more seldom
		w.pass(pause)
		w.want(owner("alice"), never)
	}
	w.wantAsked(3) // after 30 s, 60 s and 120 s
	w.wantLogged("WARN", "cannot be used", 1)
	w.answers(says(both, ""))
	w.pass(fresh)
	w.want(owner("alice"), times{60000, 3600000, false})
	w.wantLogged("INFO", "can be used again", 1)
}

// TestOneAccountInTroubleDoesNotKeepOthersFromBeingAskedAbout: a reaper asks in the
// same order each time.
func TestOneAccountInTroubleDoesNotKeepOthersFromBeingAskedAbout(t *testing.T) {
	w := newWorld(t)
	w.answers(func(out http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "alice") {
			fails(http.StatusInternalServerError)(out, r)
			return
		}
		says(both, "")(out, r)
	})
	for range 5 {
		w.Of(t.Context(), owner("alice"))
		w.Of(t.Context(), owner("bob"))
		w.pass(time.Minute)
	}
	if got := timesOf(w.Known(t.Context(), owner("bob"))); got != (times{60000, 3600000, false}) {
		t.Errorf("bob: %v", got)
	}
}

func TestASlowAnswerIsBounded(t *testing.T) {
	for name, slow := range map[string]func(http.ResponseWriter){
		"before the header": func(http.ResponseWriter) {},
		"within the body": func(w http.ResponseWriter) {
			_, _ = w.Write([]byte(`{"shell_idle_ms": 5`))
			w.(http.Flusher).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.bound = 50 * time.Millisecond
			w.answers(func(out http.ResponseWriter, r *http.Request) {
				slow(out)
				<-r.Context().Done()
			})
			w.want(owner("alice"), never) // it comes back at all
			w.want(owner("bob"), never)
			w.wantAsked(1)
		})
	}
}

func TestACallerDoesNotWaitLongerThanItsContext(t *testing.T) {
	w := newWorld(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	w.answers(func(out http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		says(both, "")(out, r)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	if got := timesOf(w.Of(ctx, owner("alice"))); got != never {
		t.Errorf("got %v", got)
	}
	close(release)
	w.want(owner("alice"), times{60000, 3600000, false}) // the question went on
	w.wantAsked(1)
}

func TestAHundredAskersAreOneQuestion(t *testing.T) {
	w := newWorld(t)
	release := make(chan struct{})
	w.answers(func(out http.ResponseWriter, r *http.Request) {
		<-release
		says(both, "")(out, r)
	})
	var ready, all sync.WaitGroup
	for range 100 {
		ready.Add(1)
		all.Go(func() {
			ready.Done()
			w.want(owner("alice"), times{60000, 3600000, false})
		})
	}
	ready.Wait()
	close(release)
	all.Wait()
	w.wantAsked(1)
}

func TestInAnOutageOneAsks(t *testing.T) {
	w := newWorld(t)
	w.answers(fails(http.StatusBadGateway))
	w.want(owner("first"), never)
	w.questions()
	w.pass(pause)
	arrived, release := make(chan struct{}), make(chan struct{})
	w.answers(func(out http.ResponseWriter, _ *http.Request) {
		close(arrived) // a second one would panic
		<-release
		out.WriteHeader(http.StatusBadGateway)
	})
	var one sync.WaitGroup
	one.Go(func() { w.want(owner("second"), never) })
	<-arrived
	w.want(owner("third"), never)
	close(release)
	one.Wait()
	w.wantAsked(1)
}

func TestTheToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	w := newWorld(t, func(c *Config) { c.TokenFile = path })
	w.answers(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer tok-2" {
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		says(both, "")(out, r)
	})
	asked := 0
	for _, c := range []struct {
		text string
		sent bool
		want times
	}{
		{"", false, never},
		{"two words", false, never},
		{"töken", false, never},
		{strings.Repeat("x", maxTokenBytes+1), false, never},
		{"tok-1\n", true, never},
		{"  tok-2\n", true, times{60000, 3600000, false}},
	} {
		must(t, os.WriteFile(path, []byte(c.text), 0o600))
		w.pass(fresh)
		w.want(owner("alice"), c.want)
		if c.sent {
			asked++
		}
	}
	w.wantAsked(asked)
	must(t, os.Remove(path))
	w.pass(fresh)
	w.want(owner("alice"), times{60000, 3600000, false})
	w.wantAsked(0)
	if text := w.log.text(); strings.Contains(text, "tok-") || strings.Contains(text, "two words") {
		t.Errorf("the log says a token:\n%s", text)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(path, []byte("tok"), 0o600))
	w := newWorld(t, func(c *Config) { c.TokenFile = path })
	w.answers(func(out http.ResponseWriter, r *http.Request) {
		http.Redirect(out, r, "/elsewhere", http.StatusFound)
	})
	w.want(owner("alice"), never)
	w.wantAsked(1)
	w.wantLogged("WARN", "status 302", 1)
}

func TestNoProxyIsUsed(t *testing.T) {
	if c := newHTTPClient(); c.Transport.(*http.Transport).Proxy != nil {
		t.Error("the variables of a proxy would send the token there")
	}
}

func TestNamesStayWithinTheirPlaceInThePath(t *testing.T) {
	for account, want := range map[string]string{
		"alice":       "alice",
		"../x":        "..%2Fx",
		"a/b":         "a%2Fb",
		"%2e":         "%252e",
		"%2e%2e/x":    "%252e%252e%2Fx",
		"a?b=c#d":     "a%3Fb=c%23d",
		"a b+c;d@e:f": "a%20b+c%3Bd@e:f",
		"ä\\..\\":     "%C3%A4%5C..%5C",
		"local":       "local",
	} {
		w := newWorld(t)
		w.answers(says(both, ""))
		w.want(owner(account), times{60000, 3600000, false})
		if len(w.asked) != 1 || w.asked[0].RequestURI != "/v1/accounts/"+want+"/settings" {
			t.Errorf("%q asked for %v", account, w.asked[0].RequestURI)
		}
	}
	w := newWorld(t)
	w.answers(says(both, ""))
	for _, account := range []string{".", ".."} {
		w.want(owner(account), none) // they have no place
	}
	w.wantAsked(0)
}

func TestABaseBelowAPath(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.URL += "/settings-api/" })
	w.answers(says(both, ""))
	w.want(owner("a/b"), times{60000, 3600000, false})
	if got := w.asked[0].RequestURI; got != "/settings-api/v1/accounts/a%2Fb/settings" {
		t.Error(got)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	var m people
	first := m.get("somebody 0")
	first.checked = time.Unix(1, 0)
	for i := range 3 * maxPeople {
		m.get(fmt.Sprint("somebody ", i))
		m.get("somebody 0") // who is asked about again and again stays
		if n := len(m.young) + len(m.old); n > maxPeople {
			t.Fatalf("%d are remembered", n)
		}
	}
	if m.get("somebody 0") != first {
		t.Error("who was asked about last was forgotten")
	}
	if p := m.get("somebody 1"); p.recalled || len(m.young) > maxPeople/2 {
		t.Error("who was not asked about is remembered")
	}
}

func TestCloseEndsAQuestion(t *testing.T) {
	w := newWorld(t)
	arrived := make(chan struct{})
	w.answers(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	var asker sync.WaitGroup
	asker.Go(func() { w.want(owner("alice"), never) })
	<-arrived
	must(t, w.Close())
	asker.Wait()
	w.want(owner("bob"), never)
	w.wantAsked(1)
	w.wantLogged("WARN", "does not answer", 0)
}

func TestWithoutAnAddressThereIsNoClient(t *testing.T) {
	if _, err := New(Config{Store: &world{}}); err == nil {
		t.Error("one was made")
	}
	if _, err := New(Config{URL: "http://127.0.0.1"}); err == nil {
		t.Error("one was made without a store")
	}
}

var _ core.Lifetimes = (*Client)(nil)
