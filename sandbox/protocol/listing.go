package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxEntity is more bytes than an honest init writes of one process: its command, of
// which each byte may take six, and all listeners.
const maxEntity = 6*MaxCommand + 128*MaxListeners

// DecodeListing reads a Listing, strictly, and one process at a time: what a hostile
// init writes in few bytes takes up to fifty times as much memory.
func DecodeListing(b []byte) (Listing, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	if err := expectTokens(d, json.Delim('{'), "processes", json.Delim('[')); err != nil {
		return Listing{}, err
	}
	l := Listing{Processes: []Entity{}}
	last, listeners := 0, 0
	for d.More() {
		e, err := decodeEntity(d)
		if err != nil {
			return Listing{}, fmt.Errorf("cannot decode a process of a listing: %w", err)
		}
		listeners += len(e.Listens)
		if e.PID <= last || listeners > MaxListeners || len(l.Processes) == MaxEntries || !e.valid() {
			return Listing{}, fmt.Errorf("cannot accept process %d of a listing", e.PID)
		}
		last = e.PID
		l.Processes = append(l.Processes, e)
	}
	if err := expectTokens(d, json.Delim(']'), json.Delim('}')); err != nil {
		return Listing{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Listing{}, errors.New("cannot decode a listing: there is something behind the object")
	}
	return l, nil
}

// expectTokens reads what must come next.
func expectTokens(d *json.Decoder, want ...json.Token) error {
	for _, w := range want {
		got, err := d.Token()
		if err != nil {
			return fmt.Errorf("cannot decode a listing: %w", err)
		}
		if got != w {
			return fmt.Errorf("cannot decode a listing: it has another token where %v belongs", w)
		}
	}
	return nil
}

func decodeEntity(d *json.Decoder) (e Entity, err error) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return e, err
	}
	if len(raw) > maxEntity {
		return e, fmt.Errorf("it has %d bytes", len(raw))
	}
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	err = strict.Decode(&e)
	return e, err
}
