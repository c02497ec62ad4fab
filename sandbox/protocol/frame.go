package protocol

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// HeaderSize is the length of a frame's header.
const HeaderSize = 8

// Header is the beginning of a frame.
type Header struct {
	Length uint32 // of the body
	FDs    uint32
}

// ParseHeader reads a header and holds it to the bounds.
func ParseHeader(b [HeaderSize]byte, maxLength, maxFDs uint32) (Header, error) {
	h := Header{binary.LittleEndian.Uint32(b[:4]), binary.LittleEndian.Uint32(b[4:])}
	if h.Length == 0 || h.Length > maxLength || h.FDs > maxFDs {
		return h, fmt.Errorf("cannot accept a frame of %d bytes with %d descriptors: the bounds are %d and %d",
			h.Length, h.FDs, maxLength, maxFDs)
	}
	return h, nil
}

// Encode gives the whole frame of a Request or a Report.
func Encode(message any, fds int) ([]byte, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a frame: %w", err)
	}
	frame := make([]byte, HeaderSize, HeaderSize+len(body))
	binary.LittleEndian.PutUint32(frame[:4], uint32(len(body))) //nolint:gosec // bounded by the receiver
	binary.LittleEndian.PutUint32(frame[4:], uint32(fds))       //nolint:gosec // at most MaxFDs
	return append(frame, body...), nil
}

// Decode reads the body of a Request or a Report into message, strictly: no
// unknown member, nothing behind the object, exactly one member set.
func Decode(body []byte, message any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(message); err != nil {
		return fmt.Errorf("cannot decode a frame: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("cannot decode a frame: there is something behind the object")
	}
	if n := members(message); n != 1 {
		return fmt.Errorf("cannot decode a frame: it has %d members, not one", n)
	}
	return nil
}

// members counts the pointers that are set in the struct that message points
// to.
func members(message any) int {
	n := 0
	v := reflect.ValueOf(message).Elem()
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			n++
		}
	}
	return n
}

// ReadReport reads one report from the init's end of the socket.
func ReadReport(r io.Reader) (Report, error) {
	var report Report
	var header [HeaderSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return report, err
	}
	h, err := ParseHeader(header, MaxReport, 0)
	if err != nil {
		return report, err
	}
	body := make([]byte, h.Length)
	if _, err := io.ReadFull(r, body); err != nil {
		return report, fmt.Errorf("cannot read a frame to its end: %w", err)
	}
	return report, Decode(body, &report)
}
