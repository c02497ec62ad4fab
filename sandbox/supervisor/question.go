package supervisor

import (
	"context"
	"errors"

	"envapi/sandbox"
	"envapi/sandbox/protocol"
)

// maxQuestions bounds what an init may leave unanswered: more than callers ask at one
// time.
const maxQuestions = 4096

var errUnanswered = errors.New("the init of the box does not answer")

// question is one that the init has not answered yet.
type question struct {
	answer chan protocol.Report
	wait   bool   // how a process ends; every other one is answered at once
	end    uint64 // of whether a process is there: that question, which falls with a no
}

// ask sends a request that has a seq, with descriptors, and waits for its answer.
func (b *Box) ask(ctx context.Context, request func(seq uint64) protocol.Request, fds ...int) (protocol.Report, error) {
	return b.put(ctx, question{}, request, fds...)
}

// put is ask for a question that is more than one.
func (b *Box) put(ctx context.Context, q question, request func(seq uint64) protocol.Request, fds ...int) (protocol.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	seq, answer, err := b.expect(q)
	if err != nil {
		return protocol.Report{}, err
	}
	if err := b.write(request(seq), fds); err != nil {
		return protocol.Report{}, err
	}
	select {
	case r := <-answer:
		return r, nil
	case <-b.done:
		return protocol.Report{}, sandbox.ErrBoxClosed
	case <-ctx.Done():
		return protocol.Report{}, ctx.Err()
	}
}

// expect registers a question. It stays until it is answered, also when nobody
// waits any more: an answer that nobody asked for ends the box.
func (b *Box) expect(q question) (uint64, <-chan protocol.Report, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closing:
		return 0, nil, sandbox.ErrBoxClosed
	case q.wait && b.waits >= maxWaits:
		return 0, nil, sandbox.ErrTooManyWaits
	case !q.wait && q.end == 0 && len(b.questions) >= maxQuestions: // the others are as many as wait
		return 0, nil, errUnanswered
	case q.wait:
		b.waits++
	}
	b.last++
	q.answer = make(chan protocol.Report, 1)
	b.questions[b.last] = q
	return b.last, q.answer, nil
}

// answer takes the answer to a question.
func (b *Box) answer(seq uint64, r protocol.Report) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, asked := b.questions[seq]
	if !asked || q.wait != (r.Waited != nil) {
		return errViolation
	}
	b.settle(seq)
	if r.Found != nil && r.Found.Errno != 0 {
		b.settle(q.end)
	}
	q.answer <- r
	return nil
}

// settle takes a question away, with the lock held.
func (b *Box) settle(seq uint64) {
	if b.questions[seq].wait {
		b.waits--
	}
	delete(b.questions, seq)
}
