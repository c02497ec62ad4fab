package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"envapi/internal/require"
)

// keyboardTime is how long anything that is typed may take to show.
const keyboardTime = 30 * time.Second

// seat is one before the terminal of a shell.
type seat struct {
	conn  *websocket.Conn
	hello object
	seen  strings.Builder
	said  []object // the messages after hello
}

// terminal is a shell of kind terminal.
type terminal struct {
	place
	id string
}

// terminal opens one, which is closed at the end of the test.
func (p place) terminal(t *testing.T, in object) terminal {
	t.Helper()
	all := object{"kind": "terminal"}
	maps.Copy(all, in)
	id := as[struct{ ID string }](t, p.must(t, "open_shell", p.in(all))).ID
	t.Cleanup(func() { _, _ = p.call(context.Background(), "close_shell", object{"shell_id": id}) })
	return terminal{p, id}
}

// sit attaches as a web page does, from an offset.
func (s terminal) sit(t *testing.T, offset int) *seat {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), keyboardTime)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, fmt.Sprintf("%s/v1/shells/%s/attach?offset=%d", s.base, s.id, offset), &websocket.DialOptions{
		HTTPHeader: http.Header{"Origin": {s.base}}, Subprotocols: []string{"envapi.v1", "envapi.bearer." + s.token},
	})
	if err != nil {
		t.Fatalf("cannot attach: %v, %v", err, resp)
	}
	conn.SetReadLimit(1 << 20)
	t.Cleanup(func() { _ = conn.CloseNow() })
	v := &seat{conn: conn}
	if err := v.next(t); err != nil || len(v.said) != 1 || v.said[0]["type"] != "hello" {
		t.Fatalf("the first message is %v, %v", v.said, err)
	}
	v.hello, v.said = v.said[0], nil
	return v
}

// next takes the next message.
func (v *seat) next(t *testing.T) error {
	ctx, cancel := context.WithTimeout(t.Context(), keyboardTime)
	defer cancel()
	kind, data, err := v.conn.Read(ctx)
	if err != nil {
		return err
	}
	if kind == websocket.MessageBinary {
		v.seen.Write(data)
		return nil
	}
	var said object
	v.said = append(v.said, said)
	return json.Unmarshal(data, &v.said[len(v.said)-1])
}

// sees reads until text was seen since it was last looked for.
func (v *seat) sees(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(v.seen.String(), text) {
		if err := v.next(t); err != nil {
			t.Fatalf("cannot see %q: %v; seen: %q, said: %v", text, err, v.seen.String(), v.said)
		}
	}
	_, rest, _ := strings.Cut(v.seen.String(), text)
	v.seen.Reset()
	v.seen.WriteString(rest)
}

func (v *seat) send(t *testing.T, kind websocket.MessageType, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), keyboardTime)
	defer cancel()
	if err := v.conn.Write(ctx, kind, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func (v *seat) types(t *testing.T, text string) {
	t.Helper()
	v.send(t, websocket.MessageBinary, text)
}

// TestAttach: what is looked for is never what the terminal echoes of the typing.
func TestAttach(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		sh := s.place(t).terminal(t, object{"cols": 100, "rows": 30})
		one, other := sh.sit(t, 0), sh.sit(t, 0)
		one.types(t, "echo size: $(stty size).\r")
		one.sees(t, "size: 30 100.")
		other.sees(t, "size: 30 100.")

		other.send(t, websocket.MessageText, `{"type": "resize", "cols": 132, "rows": 43}`)
		other.types(t, "echo size: $(stty size).\r")
		one.sees(t, "size: 43 132.")

		one.types(t, "sh -c 'echo sle\"\"eps; exec sleep 1000'\r")
		one.sees(t, "sleeps")
		one.types(t, "\x03")
		one.types(t, "echo code $?.\r")
		one.sees(t, "code 130.")

		one.types(t, "exit $((3+4))\r")
		for len(one.said) == 0 {
			if err := one.next(t); err != nil {
				t.Fatal(err)
			}
		}
		if m := one.said[0]; m["type"] != "closed" || m["reason"] != "exited" || fmt.Sprint(m["exit_code"]) != "7" {
			t.Errorf("it is said: %v", m)
		}
		if err := one.next(t); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
			t.Errorf("it ended with %v", err)
		}
	})
}

// TestAttachTakesAPasteOfAMegabyte: as fast as the program reads it, and whole.
func TestAttachTakesAPasteOfAMegabyte(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		sh := s.place(t).terminal(t, nil)
		v := sh.sit(t, 0)
		v.types(t, "stty -echo; echo rea''dy; cat >f\r")
		v.sees(t, "ready")
		line := strings.Repeat("0123456789abcde\n", 64)
		v.types(t, strings.Repeat(line, 1024))
		v.types(t, "\x04")
		v.types(t, "stty echo; wc -c <f; md5sum <f | cut -c 1-4; echo do''ne\r")
		v.sees(t, "1048576")
		v.sees(t, "done")
		if len(v.said) > 0 {
			t.Errorf("it is said: %v", v.said)
		}
	})
}

// screen is what a terminal shows.
type screen struct {
	Text      string
	Alternate bool
	CursorRow int `json:"cursor_row"`
}

// shows waits until the screen is as wanted.
func (s terminal) shows(t *testing.T, what string, wanted func(screen) bool) {
	t.Helper()
	err := eventually(func() error {
		got := as[struct{ Screen screen }](t, s.must(t, "read_shell", object{"shell_id": s.id, "screen": true, "wait_ms": 2000})).Screen
		if !wanted(got) {
			return fmt.Errorf("the screen is not %s: %+v", what, got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func (s terminal) types(t *testing.T, in object) {
	t.Helper()
	all := object{"shell_id": s.id}
	maps.Copy(all, in)
	s.must(t, "write_shell", all)
}

func TestScreenOfFullScreenPrograms(t *testing.T) {
	for _, program := range []string{"vim", "less", "top"} {
		if _, err := exec.LookPath(program); err != nil {
			require.Feature(t, program, err.Error())
		}
	}
	onEachTier(t, func(t *testing.T, s *service) {
		sh := s.place(t).terminal(t, nil)
		prompt := func(sc screen) bool { return !sc.Alternate && strings.HasSuffix(strings.TrimRight(sc.Text, "\n"), "$") }
		for _, c := range []struct {
			run  string
			want func(screen) bool
			keys object
		}{
			{
				"seq 100 >f; vim -n -u NONE f",
				func(sc screen) bool { return sc.Alternate && strings.HasPrefix(sc.Text, "1\n2\n3\n") },
				object{"data": ":q!", "keys": []string{"enter"}},
			},
			{
				"less f",
				func(sc screen) bool {
					return sc.Alternate && strings.HasPrefix(sc.Text, "1\n2\n3\n") && sc.CursorRow == 23
				},
				object{"data": "q"},
			},
			{
				"top",
				func(sc screen) bool {
					return strings.HasPrefix(sc.Text, "top - ") && strings.Contains(sc.Text, "PID USER")
				},
				object{"data": "q"},
			},
		} {
			sh.shows(t, "the prompt before "+c.run, prompt) // what is typed sooner is dropped by the one before
			sh.types(t, object{"data": "clear; " + c.run, "keys": []string{"enter"}})
			sh.shows(t, "that of "+c.run, c.want)
			sh.types(t, c.keys)
		}
		sh.shows(t, "the prompt in the end", prompt)
	})
}

// TestToLookAnswersNoQueries: of a program that asks where the cursor is, A32.
func TestToLookAnswersNoQueries(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		sh := s.place(t).terminal(t, nil)
		v := sh.sit(t, 0)
		v.types(t, "printf '\\e[6n\\e[c'; echo as''ked\r")
		v.sees(t, "asked")
		sh.shows(t, "that of the question", func(sc screen) bool { return strings.Contains(sc.Text, "asked") })
		v.types(t, "echo cle''an\r")
		v.sees(t, "clean\r\n")
	})
}
