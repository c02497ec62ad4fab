package supervisor

import (
	"io"
	"sync"

	"envapi/sandbox/frames"
)

// sideline carries what bash writes beside the script of a command. That is nobody's:
// its note of the line (set -x), and the traps that run for it as well. But where
// set -e ends bash it is the output of a trap for EXIT.
type sideline struct {
	*pump
	frame *frames.Frame
	to    io.Writer

	mu      sync.Mutex
	counts  bool   // it goes to the writer
	written []byte // until then
}

// maxAside is how much is kept: more is not nobody's.
const maxAside = 64 << 10

// newSideline carries from one of a frame's pipes.
func newSideline(frame *frames.Frame, pipe int, to io.Writer) *sideline {
	a := &sideline{frame: frame, to: to}
	a.pump = startPump(frame.Pipe(pipe).Read, a, drainPipe)
	return a
}

// Write implements io.Writer.
func (a *sideline) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts {
		return a.to.Write(p)
	}
	a.written = append(a.written, p...)
	if len(a.written) > maxAside {
		return len(p), a.count()
	}
	return len(p), nil
}

// count has what was written go to the writer. It needs mu.
func (a *sideline) count() error {
	_, err := a.to.Write(a.frame.Outside(a.written))
	a.counts, a.written = true, nil
	return err
}

// end ends it. What was written counts where bash has ended.
func (a *sideline) end(bashEnded bool) {
	if bashEnded {
		<-a.settle()
		a.mu.Lock()
		if !a.counts {
			_ = a.count()
		}
		a.mu.Unlock()
	}
	_ = a.from.Close()
}

// inTurn lets one write at a time to a writer.
type inTurn struct {
	mu sync.Mutex
	to io.Writer
}

func (t *inTurn) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.to.Write(p)
}
