package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"envapi/sandbox"
)

// pipeful is what any pipe takes at once, before anybody reads: a page.
const pipeful = 4 << 10

// input is the end where a command's standard input is written. Nobody waits for
// anything but the turn, which who writes has.
type input struct {
	pipe *os.File // does not block; deadlines interrupt it
	turn turn
	gone atomic.Bool // the command has ended

	mu    sync.Mutex // held while the turn is given back
	ended bool       // nothing may come after what is being written
}

// openInput makes the pipe of the standard input and gives the end to read from.
// What fits of from, which may be nil, is in it at once. More is kept in a file
// without a name, not in memory, and written as the command reads. After that
// the pipe ends, unless it is to stay open.
func (p *process) openInput(from io.Reader, open bool) (*os.File, error) {
	read, write, err := newPipe(writeEnd, 0)
	if err != nil {
		return nil, err
	}
	p.input = &input{pipe: write, turn: newTurn(), ended: !open}
	p.input.turn <- struct{}{}
	rest, err := p.begin(from)
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	if rest == nil {
		p.input.leave()
	} else {
		go p.input.follow(rest)
	}
	return read, nil
}

// begin writes the first page, and gives the rest; nil where there is none.
func (p *process) begin(from io.Reader) (*os.File, error) {
	if from == nil {
		return nil, nil
	}
	page, err := io.ReadAll(io.LimitReader(from, pipeful))
	if err != nil {
		return nil, fmt.Errorf("cannot read the standard input: %w", err)
	}
	if _, err := p.input.pipe.Write(page); err != nil {
		return nil, fmt.Errorf("cannot write the standard input: %w", err)
	}
	if len(page) < pipeful {
		return nil, nil
	}
	return p.box.spool(from)
}

// follow writes what did not fit at first.
func (i *input) follow(rest *os.File) {
	defer rest.Close()
	defer i.leave()
	_, _ = io.Copy(i.pipe, rest) // a command need not read its input
}

// leave gives the turn back, after the end where it was asked for.
func (i *input) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		_ = i.pipe.Close()
	}
	i.turn.give()
}

// Write implements sandbox.Input.
func (i *input) Write(ctx context.Context, p []byte) (int, error) {
	if err := i.turn.take(ctx); err != nil {
		return 0, err
	}
	defer i.leave()
	return pour(ctx, i.pipe, p, i.gone.Load)
}

// End implements sandbox.Input. It does not wait for who writes: the last of them
// ends the pipe.
func (i *input) End(context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.gone.Load() {
		return sandbox.ErrInputClosed
	}
	i.ended = true
	if i.turn.tryTake() {
		_ = i.pipe.Close()
		i.turn.give()
	}
	return nil
}

// close ends the standard input of a command that has ended.
func (i *input) close() {
	i.gone.Store(true)
	_ = i.pipe.Close() // wakes who writes
}

// spool writes a file that has no name any more, and gives it at its beginning.
func (b *Box) spool(from io.Reader) (*os.File, error) {
	f, err := os.CreateTemp(b.options.Spool, "stdin-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a file for the standard input: %w", err)
	}
	if err = os.Remove(f.Name()); err == nil {
		_, err = io.Copy(f, from)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot write the standard input: %w", err), f.Close())
	}
	return f, nil
}

// given gives a pipe or a terminal to the box's uid, for whom /dev/stdout and the
// like open it again.
func (b *Box) given(f *os.File, err error) (*os.File, error) {
	uid, gid := b.options.owner()
	if err != nil || uid == 0 || os.Geteuid() != 0 {
		return f, err
	}
	if err := f.Chown(uid, gid); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot give a pipe to the box: %w", err), f.Close())
	}
	return f, nil
}

var _ sandbox.Input = (*input)(nil)
