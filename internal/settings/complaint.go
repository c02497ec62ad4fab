package settings

import (
	"errors"
	"fmt"
	"time"
)

// calm is how long settings-api must have answered before that is said: one that refuses
// every few questions, as where it limits how often it is asked, would be a line in the log
// each time, and one more when it answers the next.
const calm = fresh

// complaint is what was said in the log of settings-api's not answering, and not taken
// back. The zero value is nothing.
type complaint struct {
	since time.Time       // when the first was said
	last  time.Time       // when it last did not answer
	kinds map[string]bool // why
}

// refusal is the error of a status by which settings-api says nothing.
type refusal struct{ status int }

func (e *refusal) Error() string { return fmt.Sprintf("it answered with status %d", e.status) }

// kindOf gives for what it does not answer: a status, or that there was none. Its values
// are few, whatever the error says.
func kindOf(err error) string {
	var r *refusal
	if errors.As(err, &r) {
		return r.Error()
	}
	return "no answer"
}

// isNew notes that it does not answer, and says whether that is to be said: once for each
// kind, until it was said that it answers again.
func (c *complaint) isNew(err error, now time.Time) bool {
	if c.kinds == nil {
		c.since, c.kinds = now, map[string]bool{}
	}
	c.last = now
	kind := kindOf(err)
	known := c.kinds[kind]
	c.kinds[kind] = true
	return !known
}

// isOver notes that it answers, and says whether that is to be said, and after how long.
func (c *complaint) isOver(now time.Time) (after time.Duration, over bool) {
	if c.kinds == nil || now.Sub(c.last) < calm {
		return 0, false
	}
	after = c.last.Sub(c.since)
	*c = complaint{}
	return after, true
}
