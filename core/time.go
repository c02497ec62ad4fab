package core

import "time"

// Time is a moment as callers see it: RFC 3339, UTC, milliseconds.
type Time struct{ time.Time }

const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// At gives t in UTC, cut to the milliseconds that callers see, so that what is
// answered and what is stored are equal.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Millisecond)} }

// MarshalJSON writes the moment as a JSON string, as timeLayout has it: by hand, since
// a list has a thousand of them.
func (t Time) MarshalJSON() ([]byte, error) {
	utc := t.UTC()
	text := make([]byte, 1, len(timeLayout)+2)
	text[0] = '"'
	text = utc.AppendFormat(text, time.RFC3339) // the library's quick one; it ends with Z
	ms := utc.Nanosecond() / int(time.Millisecond)
	text[len(text)-1] = '.'
	for _, digit := range [...]int{ms / 100, ms / 10 % 10, ms % 10} {
		text = append(text, "0123456789"[digit])
	}
	return append(text, 'Z', '"'), nil
}
