package workspace

import (
	"context"
	"errors"

	"envapi/core"
)

var errBuilding = errors.New("being built")

func (w *Workspaces) Pack(context.Context, string, int) (core.Archive, error) {
	return core.Archive{}, errBuilding
}
func (w *Workspaces) Unpack(context.Context, string, int) error       { return errBuilding }
func (w *Workspaces) Vacate(context.Context, string) error            { return errBuilding }
func (w *Workspaces) DropArchive(context.Context, string) error       { return errBuilding }
func (w *Workspaces) Copy(context.Context, string, string, int) error { return errBuilding }
func (w *Workspaces) ArchiveIDs() ([]string, error)                   { return nil, nil }
