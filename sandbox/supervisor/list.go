package supervisor

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/protocol"
)

// lists is a list of processes that was not begun when they asked who wait for it:
// what was there when they did is in it.
type lists struct {
	done  chan struct{}
	found []sandbox.ProcessInfo
	err   error
}

// Processes implements sandbox.Box. One list is made at a time, and the next one is
// for all who ask meanwhile.
func (b *Box) Processes(ctx context.Context) ([]sandbox.ProcessInfo, error) {
	b.mu.Lock()
	l := b.next
	if l == nil {
		l = &lists{done: make(chan struct{})}
		b.next = l
		go b.makeList(context.WithoutCancel(ctx), l)
	}
	b.mu.Unlock()
	select {
	case <-l.done:
		return l.found, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// makeList makes a list when it is its turn.
func (b *Box) makeList(ctx context.Context, l *lists) {
	defer close(l.done)
	_ = b.listing.take(ctx)
	defer b.listing.give()
	b.mu.Lock()
	b.next = nil
	b.mu.Unlock()
	l.found, l.err = b.list(ctx)
}

// list has the init make a list.
func (b *Box) list(ctx context.Context) ([]sandbox.ProcessInfo, error) {
	file, err := listingFile()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	answer, err := b.ask(ctx, func(seq uint64) protocol.Request {
		return protocol.Request{List: &protocol.List{Seq: seq}}
	}, int(file.Fd()))
	switch {
	case err != nil:
		return nil, err
	case answer.Listed == nil:
		return nil, b.violate("another answer than to a list")
	case answer.Listed.Errno != 0:
		return nil, fmt.Errorf("cannot list the processes of the box: %w", answer.Listed.Errno)
	}
	listing, err := readListing(file, answer.Listed.Length)
	if err != nil {
		return nil, b.violate(err.Error())
	}
	found := make([]sandbox.ProcessInfo, len(listing.Processes))
	for i, e := range listing.Processes {
		found[i] = b.info(e)
	}
	return found, nil
}

// listingFile makes the file into which an init writes: no longer than it is, so
// that nobody waits for who reads it, and nothing grows.
func listingFile() (*os.File, error) {
	f, err := memoryFile("listing")
	if err != nil {
		return nil, err
	}
	err = f.Truncate(protocol.MaxListing)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot make a memory file for a listing: %w", err)
	}
	return f, nil
}

// readListing reads what an init says that it has written.
func readListing(f *os.File, length int) (protocol.Listing, error) {
	if length < 0 || length > protocol.MaxListing {
		return protocol.Listing{}, fmt.Errorf("cannot accept a listing of %d bytes", length)
	}
	content := make([]byte, length)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, int64(length)), content); err != nil {
		return protocol.Listing{}, fmt.Errorf("cannot read a listing: %w", err)
	}
	return protocol.DecodeListing(content)
}

// info is a process as the box has said it.
func (b *Box) info(e protocol.Entity) sandbox.ProcessInfo {
	info := sandbox.ProcessInfo{
		PID: e.PID, PPID: e.Parent, StartedAt: startedAt(e.Birth), State: stateOf(e.State[0]), Command: e.Command,
		CPU: time.Duration(e.CPU), CPUPercent: e.Percent, MemoryBytes: e.Memory, Threads: e.Threads,
	}
	if p := b.process(e.Of); p != nil {
		since := p.since.Load()
		info.Of, info.Current = p.name, since > 0 && e.Marks >= since
	}
	for _, l := range e.Listens {
		info.Listens = append(info.Listens, sandbox.Listener{Protocol: l.Protocol, Address: l.At.Addr().String(), Port: int(l.At.Port())})
	}
	return info
}

// stateOf gives a state by its letter in /proc/PID/stat.
func stateOf(letter byte) sandbox.ProcessState {
	switch letter {
	case 'R':
		return sandbox.ProcessRunning
	case 'D':
		return sandbox.ProcessBlocked
	case 'T', 't':
		return sandbox.ProcessStopped
	case 'Z', 'X':
		return sandbox.ProcessZombie
	default: // 'S', and what newer kernels may call a sleep
		return sandbox.ProcessSleeping
	}
}
