package core

import (
	"bytes"
	"fmt"
)

// What may become of escape sequences.
const (
	ansiKeep  = "keep"
	ansiStrip = "strip"
)

// stripped says whether escape sequences are to be left out.
func stripped(ansi string) (bool, error) {
	switch ansi {
	case "", ansiKeep:
		return false, nil
	case ansiStrip:
		return true, nil
	}
	return false, invalid("ansi", "ansi %.16q is not one of %s, %s", ansi, ansiKeep, ansiStrip)
}

// The bytes that matter to escape sequences.
const (
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	del = 0x7f
)

// maxSequence is how long a sequence is at most. One that does not end, by mistake
// or by intent, hides no more than that; and the sequence that an offset lies in is
// found within so many bytes before it.
const maxSequence = 64 << 10

// ansiState is where in a sequence a byte stands.
type ansiState int

const (
	inText         ansiState = iota
	inEscape                 // behind ESC
	inIntermediate           // behind ESC and a byte that selects what the next one means
	inCSI                    // behind ESC [
	inOSC                    // behind ESC ], which BEL ends too
	inString                 // behind ESC P, X, ^ or _: DCS, SOS, PM, APC
)

// ansiStripper leaves escape sequences out of bytes that come piece by piece, as a
// terminal would find them. Control characters that a terminal obeys in the middle
// of a sequence are kept, newlines and carriage returns with them.
//
// Only ESC begins one. The eight-bit forms (C1) do not: as bytes they are parts of
// UTF-8 characters, and as characters they come of text in a wrong encoding more
// often than from a program that means them.
//
// In every state ESC begins a new sequence, and so what a byte is depends only on
// those since the last ESC before it.
type ansiStripper struct {
	state  ansiState
	length int // of the sequence, up to now
}

// strip gives the text in data. It keeps nothing of data.
func (a *ansiStripper) strip(data []byte) []byte {
	text := make([]byte, 0, len(data))
	for len(data) > 0 {
		if a.state == inText {
			n := bytes.IndexByte(data, esc)
			if n < 0 {
				n = len(data)
			}
			text, data = append(text, data[:n]...), data[n:]
			if len(data) == 0 {
				break
			}
		}
		if a.take(data[0]) {
			text = append(text, data[0])
		}
		data = data[1:]
	}
	return text
}

// take moves over one byte and says whether it is text.
func (a *ansiStripper) take(b byte) bool {
	if b == esc {
		a.state, a.length = inEscape, 1
		return false
	}
	if a.state == inText {
		return true
	}
	if a.length++; a.length > maxSequence {
		a.state = inText
		return true
	}
	if b == can || b == sub {
		a.state = inText
		return false
	}
	if a.state == inOSC || a.state == inString {
		if b == bel && a.state == inOSC {
			a.state = inText
		}
		return false
	}
	return a.control(b)
}

// control moves over a byte of a sequence that is not a string.
func (a *ansiStripper) control(b byte) bool {
	switch {
	case b < ' ':
		return true
	case b == del:
		return false
	case b > del: // no sequence has it: there was none
		a.state = inText
		return true
	}
	a.state = a.state.after(b)
	return false
}

// after gives the state behind a printable byte of a sequence that is not a string.
func (s ansiState) after(b byte) ansiState {
	switch {
	case s == inCSI:
		if b < '@' { // a parameter
			return inCSI
		}
		return inText
	case b < '0':
		return inIntermediate
	case s == inIntermediate:
		return inText
	}
	switch b {
	case '[':
		return inCSI
	case ']':
		return inOSC
	case 'P', 'X', '^', '_':
		return inString
	}
	return inText
}

// ansiAt gives the stripper for the bytes of a stream from an offset on: it looks
// at those before it, which may have begun a sequence. A dropped part ends one.
func ansiAt(log OutputLog, s Stream, offset int64) (*ansiStripper, error) {
	for _, back := range []int64{4 << 10, maxSequence} { // the first look mostly is enough
		from := max(0, offset-back)
		before, err := directlyBefore(log, s, from, offset)
		if err != nil {
			return nil, fmt.Errorf("cannot read output: %w", err)
		}
		if last := bytes.LastIndexByte(before, esc); last >= 0 {
			a := &ansiStripper{}
			a.strip(before[last:])
			return a, nil
		}
		if from == 0 {
			break
		}
	}
	return &ansiStripper{}, nil
}

// directlyBefore gives the bytes of a stream before an offset, from another one on
// or from where the last dropped part between them ends.
func directlyBefore(log OutputLog, s Stream, from, offset int64) ([]byte, error) {
	for from < offset {
		e := log.Extent(s, from)
		if e.Start >= offset || e.Total < offset { // there is nothing so far yet
			break
		}
		if e.End < offset {
			from = e.End + 1 // a dropped byte
			continue
		}
		data, err := log.Read(s, e.Start, offset-e.Start)
		if isExpired(err) || err == nil && e.Start+int64(len(data)) < offset {
			continue // dropped just now: look again
		}
		return data, err
	}
	return nil, nil
}
