package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"envapi/tools"
)

// line is one line of the input, without its end.
type line struct {
	text    []byte
	tooLong bool // then text is nil
}

// readLines sends the lines of in that are not blank, and closes lines at its
// end. A last line needs no newline.
func readLines(ctx context.Context, in io.Reader, lines chan<- line) {
	defer close(lines)
	reader := bufio.NewReaderSize(in, 64<<10)
	for {
		l, err := readLine(reader)
		if l.tooLong || len(l.text) > 0 {
			select {
			case lines <- l:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// readLine reads to the next newline, keeping at most MaxInputBytes.
func readLine(reader *bufio.Reader) (l line, err error) {
	for {
		part, err := reader.ReadSlice('\n')
		if l.tooLong = l.tooLong || len(l.text)+len(part) > tools.MaxInputBytes; l.tooLong {
			l.text = nil
		} else {
			l.text = append(l.text, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			l.text = bytes.TrimSpace(l.text)
			return l, err
		}
	}
}
