package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// fileEvent is one change as callers see it.
type fileEvent struct{ Type, Path, From, Kind string }

// watcher follows the changes below a directory.
type watcher struct {
	events chan fileEvent
	stop   context.CancelFunc
}

func (f folder) watch(t *testing.T, name string) watcher {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	address := f.base + strings.ReplaceAll(fileRoutes, "{environment_id}", f.id) + "/watch?" + url.Values{"path": {f.at(name)}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+f.token)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the watch is answered %s", resp.Status)
	}
	w := watcher{make(chan fileEvent, 1000), stop}
	go func() {
		defer close(w.events)
		defer resp.Body.Close()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			var e fileEvent
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok || json.Unmarshal([]byte(data), &e) != nil {
				continue
			}
			select {
			case w.events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(stop)
	return w
}

// sees waits for an event; others may come before it.
func (w watcher) sees(t *testing.T, kind, path string) fileEvent {
	t.Helper()
	deadline := time.After(patience)
	var before []fileEvent
	for {
		select {
		case e, ok := <-w.events:
			if !ok {
				t.Fatalf("the stream ended before %s of %q; there were %+v", kind, path, before)
			}
			if e.Type == kind && e.Path == path {
				return e
			}
			before = append(before, e)
		case <-deadline:
			t.Fatalf("no %s of %q came, but %+v", kind, path, before)
		}
	}
}

func TestWatchTellsOfChangesFromBothSides(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		f := s.place(t).folder(t, s.rest)
		f.run(t, "mkdir sub; echo old > sub/old; ln -s /tmp out")
		w := f.watch(t, "")
		f.write(t, "sub/api", "x")
		w.sees(t, "created", f.at("sub/api"))
		f.write(t, "sub/api", "y")
		w.sees(t, "modified", f.at("sub/api"))
		f.run(t, "echo more >> sub/old")
		w.sees(t, "modified", f.at("sub/old"))
		f.run(t, "mkdir -p new/deep; echo x > new/deep/f")
		w.sees(t, "created", f.at("new/deep/f"))
		f.run(t, "mv sub/old 'sub/n\now'")
		if e := w.sees(t, "moved", f.at("sub/n\now")); e.From != f.at("sub/old") {
			t.Errorf("it was moved from %q", e.From)
		}
		f.run(t, "chmod 700 sub/api")
		w.sees(t, "attributes", f.at("sub/api"))
		f.do(t, "delete_file", object{"path": "sub/api"})
		w.sees(t, "deleted", f.at("sub/api"))
		f.run(t, "touch /tmp/x; echo end > end")
		w.sees(t, "created", f.at("end"))
		f.do(t, "delete_file", object{"path": "", "recursive": true})
		w.sees(t, "gone", f.dir)
		for range w.events { // ends by itself
		}
	})
}

func TestAWatchThatNobodyReadsIsBounded(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	f := s.place(t).folder(t, s.rest)
	f.watch(t, "")
	before := resident(t, s.cmd.Process.Pid)
	f.py(t, "import os\nfor i in range(50000):\n  n = f'{i}' + 'n' * 200; open(n, 'w').close(); os.unlink(n)")
	w := f.watch(t, "")
	f.write(t, "f", "x")
	w.sees(t, "created", f.at("f"))
	if grown := resident(t, s.cmd.Process.Pid) - before; grown > 64<<20 {
		t.Errorf("the service has grown by %d bytes", grown)
	}
	f.fails(t, "not_found|not_a_directory", "list_files", object{"path": "f/none"})
	w.stop()
	for i := range 40 { // they are given back
		w := f.watch(t, "")
		f.write(t, fmt.Sprint("g", i), "x")
		w.sees(t, "created", f.at(fmt.Sprint("g", i)))
		w.stop()
	}
}
