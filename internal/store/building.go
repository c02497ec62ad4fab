package store

import (
	"context"
	"errors"
	"time"

	"envapi/core"
)

var errBuilding = errors.New("being built")

func (s *Store) TurnEnvironment(context.Context, core.Owner, string, core.EnvironmentQuota, func(*core.EnvironmentRecord) error) (core.EnvironmentRecord, error) {
	return core.EnvironmentRecord{}, errBuilding
}
func (s *Store) TouchEnvironments(context.Context, map[string]time.Time) error { return errBuilding }
func (s *Store) IdleEnvironments(context.Context, time.Time, string, int) ([]core.EnvironmentRecord, string, error) {
	return nil, "", errBuilding
}
func (s *Store) OldCommands(context.Context, string, time.Time, int) ([]core.Remnant, error) {
	return nil, errBuilding
}
func (s *Store) RemoveCommands(context.Context, []string) error { return errBuilding }
func (s *Store) OldShells(context.Context, time.Time, int) ([]core.Remnant, error) {
	return nil, errBuilding
}
func (s *Store) RemoveShells(context.Context, []string) error           { return errBuilding }
func (s *Store) PruneKeys(context.Context, time.Time, int) (int, error) { return 0, errBuilding }
func (s *Store) KeepSettings(context.Context, string, string) error     { return errBuilding }
func (s *Store) Settings(context.Context, string) (string, error)       { return "", errBuilding }
