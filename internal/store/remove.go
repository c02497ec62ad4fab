package store

import "context"

// removeAtOnce is how many commands, and how many shells, one transaction
// removes: a few milliseconds of work, for which all other writers wait.
const removeAtOnce = 500

// changeAtOnce is likewise how many environments one transaction changes.
const changeAtOnce = 500

// removeRows removes the commands and shells of an environment that is to be
// removed, in many transactions: however much ran there, nobody else waits long.
func (s *Store) removeRows(ctx context.Context, environmentID string) error {
	for more := true; more; {
		err := s.writeFreeing(ctx, s.quick, "remove what ran in the environment", func(ctx context.Context, tx *statements) (err error) {
			more, err = removeSome(ctx, tx, environmentID)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// removeSome removes up to removeAtOnce commands, and shells, with their keys, the
// oldest first, and says whether there may be more.
func removeSome(ctx context.Context, tx *statements, environmentID string) (more bool, err error) {
	const (
		ofCommands = ` FROM commands WHERE environment_id = ?1 ORDER BY seq LIMIT ?2`
		ofShells   = ` FROM shells WHERE environment_id = ?1 ORDER BY seq LIMIT ?2`
	)
	most := int64(0)
	for _, query := range []string{
		`DELETE FROM idempotency WHERE resource_id IN (SELECT id` + ofCommands + `)`,
		`DELETE FROM commands WHERE seq IN (SELECT seq` + ofCommands + `)`,
		`DELETE FROM idempotency WHERE resource_id IN (SELECT id` + ofShells + `)`,
		`DELETE FROM shells WHERE seq IN (SELECT seq` + ofShells + `)`,
	} {
		removed, err := tx.exec(ctx, query, environmentID, removeAtOnce)
		if err != nil {
			return false, err
		}
		most = max(most, removed)
	}
	return most == removeAtOnce, nil
}
