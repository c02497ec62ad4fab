package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// longWait is the wait of calls that must answer at once, in milliseconds, and
// atOnce is how long they may take on a machine that is busy with other tests.
const (
	longWait = 40_000
	atOnce   = 10 * time.Second
)

// play is what a case does with one shell, in order.
type play []step

type step func(t *testing.T, s *stage)

// stage is where a play is played.
type stage struct {
	shell
	dir  string  // of the case, where its shell starts
	mark string  // what MARK is in its scripts, see mark
	last command // the latest command
	// mayClose is where a case says later whether the shell has closed.
	mayClose bool
}

func (s *stage) play(t *testing.T, steps play) {
	t.Helper()
	for i, act := range steps {
		act(t, s)
		if t.Failed() {
			t.Fatalf("in step %d", i+1)
		}
	}
}

// outcome is what an answer must be. Unless something else is wanted: exited
// with 0, nothing printed, answered at once, the shell open.
type outcome struct {
	in      object // more of the input
	status  string
	exit    int
	exits   []int // more codes that are right
	anyEnd  bool  // any end is right
	signal  string
	reason  string
	out     string
	outAny  bool
	outHas  []string // at least these, beside what out says
	errHas  []string
	errAny  bool
	closes  string // the close_reason of the shell that ends with it
	refused string // the code
	refuses string // the reason that goes with it
	waiting *bool
	cwd     string
}

type want func(*outcome)

func with(in object) want    { return func(o *outcome) { o.in = in } }
func exits(code int) want    { return func(o *outcome) { o.exit = code } }
func prints(out string) want { return func(o *outcome) { o.out = out } }
func printing(s string) want {
	return func(o *outcome) { o.outAny, o.outHas = true, append(o.outHas, s) }
}
func complains(s string) want { return func(o *outcome) { o.errHas = append(o.errHas, s) } }
func anything() want          { return func(o *outcome) { o.outAny, o.errAny = true, true } }
func anyError() want          { return func(o *outcome) { o.errAny = true } }
func closing(r string) want   { return func(o *outcome) { o.closes = r } }
func leaves(cwd string) want  { return func(o *outcome) { o.cwd = cwd } }
func isRefused(code string) want {
	return func(o *outcome) { o.refused = code }
}

// goneFor is the answer of a closed shell.
func goneFor(reason string) want {
	return func(o *outcome) { o.refused, o.refuses = "shell_closed", reason }
}

func dies(signal string) want {
	return func(o *outcome) { o.status, o.signal = "signaled", signal }
}

// isKilled and timesOut let bash say what it saw, as "Killed".
func isKilled(reason string) want {
	return func(o *outcome) { o.status, o.reason, o.errAny = "killed", reason, true }
}

func timesOut() want {
	return func(o *outcome) { o.status, o.errAny = "timed_out", true }
}

// runsOn is what runs when the answer comes and does not wait for input.
func runsOn() want {
	return func(o *outcome) { o.status, o.waiting = "running", new(false) }
}

// prompts is what runs and waits for input, so that the call's wait has ended.
func prompts() want {
	return func(o *outcome) { o.status, o.waiting = "running", new(true) }
}

func wanted(wants []want) outcome {
	o := outcome{status: "exited"}
	for _, w := range wants {
		w(&o)
	}
	return o
}

// run runs a command in the shell.
func run(script string, wants ...want) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		o := wanted(wants)
		all := s.ref(object{"command": strings.ReplaceAll(script, "MARK", s.mark), "wait_ms": longWait})
		maps.Copy(all, o.in)
		s.expect(t, "run_in_shell", all, o)
	}
}

// ends waits for the end of the latest command.
func ends(wants ...want) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.expect(t, "get_command", object{"command_id": s.last.ID, "wait_ms": longWait}, wanted(wants))
	}
}

// signaled sends a signal to the latest command.
func signaled(signal string, wants ...want) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.expect(t, "signal_command", object{"command_id": s.last.ID, "signal": signal}, wanted(wants))
	}
}

// types types text, and presses keys, and eof ends the input of the program.
func types(data string) step  { return typing(object{"data": data}) }
func presses(key string) step { return typing(object{"keys": []string{key}}) }
func eof() step               { return typing(object{"eof": true}) }

func typing(in object) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.types(t, in)
	}
}

// settled waits until the latest command has printed the text.
func settled(stream, text string) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.shows(t, s.last.ID, stream, text)
	}
}

// shows waits until a command has printed the text.
func (r rest) shows(t *testing.T, id, stream, text string) {
	t.Helper()
	err := eventually(func() error {
		p := r.output(t, id, object{"stream": stream, "limit_bytes": 1 << 20, "wait_ms": 50})
		if got := string(p.bytes(t)); !strings.Contains(got, text) {
			return fmt.Errorf("%s is %q, want %q in it", stream, got, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// expect makes a call and compares its answer, which must come at once.
func (s *stage) expect(t *testing.T, operation string, in object, o outcome) {
	t.Helper()
	answer, err := s.timed(t, operation, in)
	var refused *problem
	if o.refused != "" || errors.As(err, &refused) {
		if !errors.As(err, &refused) || refused.Code != o.refused || refused.Reason != o.refuses {
			t.Errorf("%v gave %v %v, want %s %s", brief(in), brief(answer), err, o.refused, o.refuses)
		}
		return
	}
	if err != nil {
		t.Fatalf("%v: %v", brief(in), err)
	}
	s.last = as[command](t, answer)
	if s.mayClose && s.last.ShellClosed {
		o.closes = s.record(t).CloseReason
	}
	for _, wrong := range o.compare(s.last) {
		t.Errorf("%v: %s", brief(in), wrong)
	}
	if t.Failed() {
		t.Logf("stdout %q, stderr %q, next %q", s.last.Stdout.Text, s.last.Stderr.Text, s.last.Next)
	}
	if o.closes != "" {
		if got := s.record(t); got.State != "closed" || got.CloseReason != o.closes {
			t.Errorf("the shell is %s %s, want closed %s", got.State, got.CloseReason, o.closes)
		}
	}
}

// timed makes a call that must be answered at once.
func (s *stage) timed(t *testing.T, operation string, in object) (object, error) {
	t.Helper()
	begin := time.Now()
	answer, err := s.call(context.Background(), operation, in)
	if d := time.Since(begin); d > atOnce {
		t.Errorf("%v was answered after %s", brief(in), d)
	}
	return answer, err
}

// compare says what is wrong with a command.
func (o outcome) compare(c command) []string {
	if o.anyEnd && c.Status != "running" {
		return nil
	}
	exit := o.exit
	if slices.Contains(o.exits, c.exit()) {
		exit = c.exit()
	}
	if o.status != "exited" {
		exit = -1
	}
	wrongs := []string{
		differs("status", c.Status, o.status), differs("exit_code", c.exit(), exit),
		differs("signal", c.Signal, o.signal), differs("shell_closed", c.ShellClosed, o.closes != ""),
	}
	if o.status == "killed" {
		wrongs = append(wrongs, differs("reason", c.Reason, o.reason))
	}
	if !o.outAny && o.status != "running" {
		wrongs = append(wrongs, differs("stdout", fmt.Sprintf("%q", c.Stdout.Text), fmt.Sprintf("%q", o.out)))
	}
	wrongs = append(wrongs, lacks("stdout", c.Stdout.Text, o.outHas), lacks("stderr", c.Stderr.Text, o.errHas))
	if len(o.errHas) == 0 && !o.errAny && c.Stderr.Text != "" {
		wrongs = append(wrongs, fmt.Sprintf("stderr is %q", c.Stderr.Text))
	}
	if o.waiting != nil {
		wrongs = append(wrongs, differs("waiting_for_input", known(c.Waiting), known(o.waiting)))
	}
	if o.cwd != "" {
		wrongs = append(wrongs, differs("cwd", c.Cwd, o.cwd))
	}
	return slices.DeleteFunc(wrongs, func(w string) bool { return w == "" })
}

func lacks(what, text string, parts []string) string {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return fmt.Sprintf("%s is %q, want %q in it", what, text, part)
		}
	}
	return ""
}

func known(b *bool) string {
	if b == nil {
		return "not known"
	}
	return fmt.Sprint(*b)
}

// shellCase is a case of the list, played in a new shell of its own.
type shellCase struct {
	name string
	in   object // of open_shell
	play play
}

// playEach plays cases on each tier.
func playEach(t *testing.T, cases []shellCase) {
	t.Helper()
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { p.stage(t, c.in).play(t, c.play) })
		}
	})
}

// stage opens a shell in a folder of its own.
func (p place) stage(t *testing.T, in object) *stage {
	t.Helper()
	s := &stage{mark: mark(), dir: "case-" + mark()}
	p.sh(t, "mkdir "+s.dir)
	all := object{"cwd": s.dir}
	maps.Copy(all, in)
	s.shell = p.open(t, all)
	return s
}

// elsewhere runs a script beside the shell, in the same folder.
func elsewhere(script string) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		c := s.exec(t, object{"command": script, "cwd": s.dir})
		if c.exit() != 0 {
			t.Errorf("%q: %s %d: %s", script, c.Status, c.exit(), c.Stderr.Text)
		}
	}
}

// reopened goes on in a new shell.
func reopened() step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.shell = s.open(t, object{"cwd": s.dir})
	}
}

// live waits until so many processes have the mark.
func live(n int) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		mustRun(t, s.mark, n)
	}
}

// none sees that no process has the mark any more, now.
func none() step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		if n := alive(s.mark); n != 0 {
			t.Errorf("%d processes are left", n)
		}
	}
}

// closes closes the shell.
func closes(in object) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		got := as[shellRecord](t, s.must(t, "close_shell", s.ref(in)))
		if got.State != "closed" || got.CloseReason != "closed" {
			t.Errorf("the shell is %s %s", got.State, got.CloseReason)
		}
	}
}

// beside plays steps in another shell.
func beside(steps ...step) step {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.place.stage(t, nil).play(t, steps)
	}
}
