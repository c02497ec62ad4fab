package core

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"envapi/sandbox"
)

// defaultRoomWait is how long a write waits for room where its caller names no
// time.
const defaultRoomWait = 5 * time.Second

// typed is what is to be written to a program, checked.
type typed struct {
	data []byte
	eof  bool
	wait time.Duration // for room
}

// newTyped reads the part of an input that says what to write.
func newTyped(data, encoding string, keys []string, eof bool, waitMS *int64) (typed, error) {
	wait, err := waitTime(waitMS, defaultRoomWait)
	if err != nil {
		return typed{}, err
	}
	bytes, err := decoded(data, encoding)
	if err != nil {
		return typed{}, err
	}
	for _, key := range keys {
		pressed, err := keyBytes(key)
		if err != nil {
			return typed{}, err
		}
		if bytes = append(bytes, pressed...); len(bytes) > MaxInputBytes {
			return typed{}, tooMuchInput()
		}
	}
	if len(bytes) == 0 && !eof {
		return typed{}, invalid("data", "there is nothing to write: give what to write, or eof")
	}
	return typed{bytes, eof, wait}, nil
}

// decoded gives the bytes of data.
func decoded(data, encoding string) ([]byte, error) {
	var bytes []byte
	switch encoding {
	case "", encodingText:
		bytes = []byte(data)
	case encodingBase64:
		if len(data) > base64.StdEncoding.EncodedLen(MaxInputBytes) {
			return nil, tooMuchInput()
		}
		var err error
		if bytes, err = base64.StdEncoding.Strict().DecodeString(data); err != nil {
			return nil, invalid("data", "cannot read data as base64: %v", err)
		}
	default:
		return nil, invalid("encoding", "encoding %.16q is not one of utf-8, base64", encoding)
	}
	if len(bytes) > MaxInputBytes {
		return nil, tooMuchInput()
	}
	return bytes, nil
}

func tooMuchInput() *Error {
	return Errorf(CodeTooLarge, "there are more than %d bytes to write: write them in parts", MaxInputBytes).
		With("allowed_bytes", MaxInputBytes).With("field", "data")
}

// taken is what came of a write.
type taken struct {
	written int
	next    string // where not all was written: what to do
}

// put writes to a program, as far as it reads in time. It fails where nothing was
// written because nobody can read it, or because it cannot be read.
func (t typed) put(ctx context.Context, in sandbox.Input) (taken, error) {
	ctx, cancel := context.WithTimeout(ctx, t.wait)
	defer cancel()
	n, err := in.Write(ctx, t.data)
	if err == nil && t.eof {
		err = in.End(ctx)
	}
	switch {
	case errors.Is(err, sandbox.ErrLineTooLong):
		return taken{}, invalid("data", "a line of data is longer than the 4095 bytes that a terminal can hold for a program that reads whole lines: write shorter lines, or put the text into a file").Because(err)
	case errors.Is(err, sandbox.ErrInputClosed) && n == 0 && len(t.data) > 0:
		return taken{}, Errorf(CodeInputClosed, "nobody can read this input any more, since its end was given before or the program closed it: nothing was written").Because(err)
	case err != nil && !errors.Is(err, sandbox.ErrInputClosed) && ctx.Err() == nil:
		return taken{}, fmt.Errorf("cannot write to a program: %w", err)
	}
	return taken{n, t.rest(n, err)}, nil
}

// rest says what to do where not all was written.
func (t typed) rest(n int, err error) string {
	var words []string
	switch left := len(t.data) - n; {
	case err == nil:
		return ""
	case errors.Is(err, sandbox.ErrInputClosed) && len(t.data) == 0:
		return "The input is at its end already."
	case errors.Is(err, sandbox.ErrInputClosed):
		return "Nobody can read this input any more: what is missing was not written."
	case left > 0:
		words = append(words, fmt.Sprintf("The last %d bytes were not taken, since the program does not read: write them again later.", left))
	}
	if t.eof {
		words = append(words, "The end of the input was not given yet: give eof again later.")
	}
	return strings.Join(words, " ")
}

// WriteInput writes to the input of a command that was started with stdin_open, or
// that has a terminal. It fails with `not_found`, `invalid_argument`, `too_large`
// or `input_closed`.
func (s *Service) WriteInput(ctx context.Context, c Caller, in WriteInputInput) (InputTaken, error) {
	what, err := newTyped(in.Data, in.Encoding, nil, in.EOF, in.WaitMS)
	if err != nil {
		return InputTaken{}, err
	}
	inline, err := inlineBytes(in.OutputBytes)
	if err != nil {
		return InputTaken{}, err
	}
	f, err := s.find(ctx, c.Owner, in.CommandID)
	if err != nil {
		return InputTaken{}, err
	}
	input, err := f.input()
	if err != nil {
		return InputTaken{}, err
	}
	s.used(f.record.EnvironmentID)
	if f.run.shell != nil {
		s.touch(ctx, f.run.shell)
	}
	took, err := what.put(ctx, input)
	if err != nil {
		return InputTaken{}, err
	}
	answer := InputTaken{s.show(ctx, f, view{inline: inline}), int64(took.written)}
	answer.Next = strings.TrimSpace(took.next + " " + answer.Next)
	return answer, nil
}

// input gives the way to what a command reads, or `input_closed`.
func (f found) input() (sandbox.Input, error) {
	id := f.record.ID
	switch {
	case f.run == nil || isClosed(f.run.ended.known):
		return nil, Errorf(CodeInputClosed, "command %q has ended: nothing reads its input any more", id)
	case !isClosed(f.run.begun):
		return nil, Errorf(CodeInputClosed, "command %q waits in line and reads nothing yet: wait for its turn with get_command", id)
	}
	if t := f.run.process.Terminal(); t != nil {
		return t, nil
	}
	if in := f.run.process.Input(); in != nil {
		return in, nil
	}
	return nil, Errorf(CodeInputClosed, "the input of command %q is at its end since it was started: start it with stdin_open or tty to write to it", id)
}
