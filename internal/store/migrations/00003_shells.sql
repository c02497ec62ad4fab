-- +goose Up

CREATE TABLE shells (
    seq              INTEGER PRIMARY KEY,
    id               TEXT    NOT NULL UNIQUE,
    environment_id   TEXT    NOT NULL REFERENCES environments (id),
    account          TEXT    NOT NULL,
    profile          TEXT    NOT NULL,
    name             TEXT    NOT NULL,
    kind             TEXT    NOT NULL,
    cols             INTEGER NOT NULL,
    rows             INTEGER NOT NULL,
    cwd              TEXT    NOT NULL,  -- after the last command that ended
    opened_ms        INTEGER NOT NULL,
    last_activity_ms INTEGER NOT NULL,
    state            TEXT    NOT NULL,
    close_reason     TEXT    NOT NULL DEFAULT '',
    exit_code        INTEGER,
    signal           TEXT    NOT NULL DEFAULT '',
    closed_ms        INTEGER
) STRICT;
CREATE INDEX shells_of_owner ON shells (account, profile);
CREATE INDEX shells_of_owner_by_state ON shells (account, profile, state);
CREATE INDEX shells_of_environment ON shells (environment_id);
CREATE INDEX shells_of_environment_by_state ON shells (environment_id, state);

ALTER TABLE commands ADD COLUMN shell_id TEXT;  -- null: it was run in none
ALTER TABLE commands ADD COLUMN shell_closed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE commands ADD COLUMN late_tty INTEGER NOT NULL DEFAULT 0;
CREATE INDEX commands_of_shell ON commands (shell_id) WHERE shell_id IS NOT NULL;
CREATE INDEX commands_of_shell_by_status ON commands (shell_id, status) WHERE shell_id IS NOT NULL;
