package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// answerBound is how long a witness waits for one answer: longer than any takes.
const answerBound = 3 * time.Minute

// witness is a client that notes what it is answered. It has a profile of its own, and
// one call under way at a time, so that it knows what must be there: what was
// answered, and of the one call that was not, all or nothing.
type witness struct {
	rest
	door     client // what it makes its changes through
	overMCP  bool
	rng      *rand.Rand
	mark     string // of its sleeps
	answered *atomic.Int64
	envs     map[string]*dwelling
	commands map[string]*ran
	shells   map[string]*opened
	gone     []string // environments that were deleted, the last few
	doubt    *act     // the call that was not answered
	why      error    // how it ended
	tags     int
	answers  map[string]int // how many, by operation
	refusals map[string]int // how many, by code
	// allowed says which refusals are no failure, and whether such a call may have
	// been done all the same.
	allowed func(code string) (allowed, done bool)
	// failing says that the store fails now, so that a passing state may last.
	failing bool
	// files says to run nothing: where the disk is full a command itself may fail.
	files bool
}

// act is one call, and what is to be noted of it.
type act struct {
	operation string
	in        object
	call      func(context.Context) (object, error) // where it is none by name
	on, to    *dwelling                             // what it makes of an environment; to is nil where it deletes it
	ends      string                                // the reason for which it ends what runs there
	noted     func(answer object) error             // what else its answer says
	unsure    func()                                // what else to note where there was no answer
	settle    func(context.Context) error           // how to find out what became of it, instead
}

func (s *act) String() string { return fmt.Sprintf("%s %s", s.operation, brief(s.in)) }

// tag is a word that no other call has.
func (w *witness) tag() string {
	w.tags++
	return fmt.Sprintf("t%d-%08x", w.tags, w.rng.Uint32())
}

// work makes calls until it is told to stop, or one is not answered, which is then in
// doubt.
func (w *witness) work(stop *atomic.Bool) error {
	for !stop.Load() {
		if err := w.take(w.next()); err != nil || w.doubt != nil {
			return err
		}
	}
	return nil
}

// take makes one call.
func (w *witness) take(s *act) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerBound)
	defer cancel()
	answer, err := w.send(ctx, s)
	var p *problem
	switch {
	case err == nil:
		w.answered.Add(1)
		w.answers[s.operation]++
		err = w.note(s, answer)
	case errors.As(err, &p):
		w.refusals[p.Code]++
		if err = w.refused(ctx, s, p); brokenOff(err) || w.failing && errors.Is(err, errPassing) {
			w.doubt, w.why, err = s, err, nil
		}
	default:
		w.doubt, w.why = s, err
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	return nil
}

// errPassing says that an environment is on its way from one state to another.
var errPassing = errors.New("an environment is in a passing state")

// brokenOff says whether a connection ended before its answer.
func brokenOff(err error) bool {
	var asked *url.Error
	var read *net.OpError
	return errors.As(err, &asked) || errors.As(err, &read) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func (w *witness) send(ctx context.Context, s *act) (object, error) {
	if s.call != nil {
		return s.call(ctx)
	}
	return w.door.call(ctx, s.operation, s.in)
}

// note notes what an answer says.
func (w *witness) note(s *act, answer object) error {
	switch {
	case s.on == nil:
	case s.to == nil:
		w.forget(s.on.id)
	default:
		if s.ends != "" {
			w.ended(s.on.id, s.ends, true)
		}
		w.envs[s.on.id] = s.to
	}
	if s.noted != nil {
		return s.noted(answer)
	}
	return nil
}

// refused notes that a call was refused: nothing was done then, except where what
// fails cannot say so.
func (w *witness) refused(ctx context.Context, s *act, p *problem) error {
	if w.allowed == nil {
		return p
	}
	allowed, done := w.allowed(p.Code)
	if !allowed {
		return p
	}
	w.unsure(s)
	if done {
		return w.resolve(ctx, s)
	}
	if s.on == nil {
		return nil
	}
	return w.adopt(ctx, s.on.id, s.on.variants()...)
}

// unsure notes what a call may have ended that was not answered with success: what runs
// is ended first.
func (w *witness) unsure(s *act) {
	if s.unsure != nil {
		s.unsure()
	}
	if s.on != nil && s.ends != "" {
		w.ended(s.on.id, s.ends, false)
	}
}

// resolve finds out what became of a call that was not answered with success: all of
// it, or nothing.
func (w *witness) resolve(ctx context.Context, s *act) error {
	if s.settle != nil {
		return s.settle(ctx)
	}
	if s.on == nil {
		return nil
	}
	return w.adopt(ctx, s.on.id, append(s.on.variants(), s.to)...)
}

// adopt looks at an environment, which must be one of those that it may be.
func (w *witness) adopt(ctx context.Context, id string, may ...*dwelling) error {
	seen, err := w.look(ctx, id)
	if err != nil {
		return err
	}
	var all []string
	for _, d := range may {
		why := d.differs(seen)
		if why == "" && d == nil {
			w.forget(id)
			return nil
		}
		if why == "" {
			w.envs[id] = d
			return nil
		}
		all = append(all, why)
	}
	return fmt.Errorf("environment %s is none of the %d that it may be: %s", id, len(may), strings.Join(all, " | "))
}

// look gives what there is of an environment, nil where there is none. It waits until
// it is in no passing state.
func (w *witness) look(ctx context.Context, id string) (*dwelling, error) {
	var d dwelling
	var failed error
	bound := patience
	if w.failing {
		bound = time.Second
	}
	err := within(bound, func() error {
		var answer object
		if answer, failed = w.rest.call(ctx, "get_environment", object{"environment_id": id}); failed != nil {
			return nil
		}
		if d = dwellingOf(answer); d.state == "active" || d.state == "archived" {
			return nil
		}
		if again := map[string]string{"resetting": "reset_environment", "deleting": "delete_environment"}[d.state]; again != "" && w.allowed != nil {
			_, _ = w.rest.call(ctx, again, object{"environment_id": id}) // what failed is asked for again
		}
		return fmt.Errorf("%w: %s is %s", errPassing, id, d.state)
	})
	if isCode(failed, "not_found") {
		return nil, nil
	}
	if err = errors.Join(err, failed); err == nil && d.state == "active" {
		d.tree, err = w.export(ctx, id)
	}
	return &d, err
}

func dwellingOf(answer object) dwelling {
	labels, _ := answer["labels"].(map[string]any)
	return dwelling{id: text(answer, "id"), name: text(answer, "name"), label: text(labels, "l"), state: text(answer, "state")}
}

func isCode(err error, code string) bool {
	var p *problem
	return errors.As(err, &p) && p.Code == code
}

// export reads all that is in a workspace, as a tar.
func (w *witness) export(ctx context.Context, id string) (tree, error) {
	_, body, err := w.bytes(ctx, http.MethodGet, id, "/archive", url.Values{"compression": {"none"}}, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot export %s: %w", id, err)
	}
	all := tree{}
	for r := tar.NewReader(bytes.NewReader(body)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		kind := map[byte]byte{tar.TypeReg: 'f', tar.TypeDir: 'd', tar.TypeSymlink: 'l'}[h.Typeflag]
		if name := path.Clean(h.Name); name != "." {
			all[name] = node{kind, h.Mode & 0o7777, string(content) + h.Linkname}
		}
	}
}

// bytes uses a route of bytes, which only REST has. It gives the header of the answer,
// and the body.
func (w *witness) bytes(ctx context.Context, method, id, route string, query url.Values, body io.Reader) (http.Header, []byte, error) {
	address := w.base + strings.ReplaceAll(fileRoutes, "{environment_id}", id) + route + "?" + query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		_, err = decodeAnswer(resp.StatusCode, data)
	}
	return resp.Header, data, err
}

// bareMCP calls tools by single requests, so that it can be used again whenever a
// service is there again.
type bareMCP struct{ rest }

func (c bareMCP) call(ctx context.Context, operation string, in object) (object, error) {
	message, err := json.Marshal(object{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": object{"name": operation, "arguments": in},
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/mcp", bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Result *toolResult
		Error  any
	}
	if err := json.Unmarshal(data, &answer); err != nil || answer.Result == nil {
		return nil, fmt.Errorf("no result of a tool: %s %.300s %w", resp.Status, data, err)
	}
	return answer.Result.answer()
}

// oneOf is one of them, or "" of none.
func (w *witness) oneOf(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[w.rng.IntN(len(all))]
}

// keys are the keys of a map in order, so that a seed chooses the same ones again.
func keys[T any](m map[string]T, which func(T) bool) []string {
	var all []string
	for k, v := range m {
		if which(v) {
			all = append(all, k)
		}
	}
	slices.Sort(all)
	return all
}
