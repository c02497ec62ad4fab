package supervisor

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/protocol"
)

// asked registers a question that must be taken.
func asked(t *testing.T, b *Box, q question) (seq uint64) {
	t.Helper()
	seq, _, err := b.expect(q)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// TestAWaitGivesItsPlaceBack: also where nobody is there any more for the answer.
func TestAWaitGivesItsPlaceBack(t *testing.T) {
	for name, answers := range map[string]func(found, end uint64) []protocol.Report{
		"that has found nothing": func(found, _ uint64) []protocol.Report {
			return []protocol.Report{{Found: &protocol.Found{Seq: found, Errno: unix.ESRCH}}}
		},
		"that has ended": func(found, end uint64) []protocol.Report {
			return []protocol.Report{{Found: &protocol.Found{Seq: found}}, {Waited: &protocol.Waited{End: end}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &Box{questions: map[uint64]question{}}
			for range maxWaits + 1 {
				end := asked(t, b, question{wait: true})
				found := asked(t, b, question{end: end})
				for _, r := range answers(found, end) {
					if err := b.take(r); err != nil {
						t.Fatal(err)
					}
				}
			}
			if b.waits != 0 || len(b.questions) != 0 {
				t.Errorf("%d waits and %d questions are left", b.waits, len(b.questions))
			}
		})
	}
}

func TestAnInitHasNoMoreWaitsOrQuestionsThanItsBounds(t *testing.T) {
	b := &Box{questions: map[uint64]question{}}
	for range maxWaits {
		asked(t, b, question{end: asked(t, b, question{wait: true})})
	}
	if _, _, err := b.expect(question{wait: true}); !errors.Is(err, sandbox.ErrTooManyWaits) {
		t.Errorf("one wait too many: %v", err)
	}
	plain := uint64(0)
	for len(b.questions) < maxQuestions {
		plain = asked(t, b, question{})
	}
	if _, _, err := b.expect(question{}); !errors.Is(err, errUnanswered) {
		t.Errorf("one question too many: %v", err)
	}
	// By such an answer it would have one wait more.
	if err := b.take(protocol.Report{Waited: &protocol.Waited{End: plain}}); !errors.Is(err, errViolation) || b.waits != maxWaits {
		t.Errorf("an end for another question: %v, %d waits", err, b.waits)
	}
}
