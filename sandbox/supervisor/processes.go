package supervisor

import (
	"context"
	"errors"

	"envapi/sandbox"
)

// TODO(H1): these three are being built.

// Processes implements sandbox.Box.
func (b *Box) Processes(context.Context) ([]sandbox.ProcessInfo, error) {
	return nil, errors.New("being built")
}

// SignalProcess implements sandbox.Box.
func (b *Box) SignalProcess(context.Context, sandbox.ProcessRef, string, bool) (int, error) {
	return 0, errors.New("being built")
}

// WaitProcess implements sandbox.Box.
func (b *Box) WaitProcess(context.Context, sandbox.ProcessRef) (sandbox.ProcessEnd, error) {
	return sandbox.ProcessEnd{}, errors.New("being built")
}
