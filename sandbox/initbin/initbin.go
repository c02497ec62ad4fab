// Package initbin holds the program of a box's init (cmd/envapi-init) inside
// the binaries that start it. `make build` puts it here, built without cgo for
// the same machine.
//
// It is a program of its own, and not another face of the service's, since a
// start of the service's program takes several times as long as everything
// else that makes a box (docs/adr/box-init.md).
package initbin

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

//go:embed all:*
var files embed.FS

// Open gives the program.
func Open() (io.ReadCloser, error) {
	f, err := files.Open("envapi-init")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("cannot make boxes: this binary was built without the box init; build it with make")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the box init: %w", err)
	}
	return f, nil
}
