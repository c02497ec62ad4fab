-- +goose Up

ALTER TABLE environments ADD COLUMN idle_ms INTEGER;                -- null: its owner has not said
ALTER TABLE environments ADD COLUMN archived_ms INTEGER;            -- null, as the three below: it has no archive
ALTER TABLE environments ADD COLUMN archive_bytes INTEGER;
ALTER TABLE environments ADD COLUMN archive_content_bytes INTEGER;
ALTER TABLE environments ADD COLUMN archive_content_files INTEGER;
CREATE INDEX environments_by_activity ON environments (last_activity_ms) WHERE state = 'active';

-- What is too old is looked for by these, so that a look reads only what it finds.
CREATE INDEX commands_by_end ON commands (ended_ms) WHERE ended_ms IS NOT NULL;
CREATE INDEX commands_of_environment_by_end ON commands (environment_id, ended_ms) WHERE ended_ms IS NOT NULL;
CREATE INDEX shells_by_end ON shells (closed_ms) WHERE closed_ms IS NOT NULL;

-- When a key was first used. Nobody knows it of those that are there: they are kept
-- as if it had been now.
ALTER TABLE idempotency ADD COLUMN created_ms INTEGER NOT NULL DEFAULT 0;
UPDATE idempotency SET created_ms = CAST(unixepoch('subsec') * 1000 AS INTEGER);
CREATE INDEX idempotency_by_age ON idempotency (created_ms);

-- What was last known of the settings of an account, in the words of who asks for them.
CREATE TABLE settings (
    account TEXT    NOT NULL PRIMARY KEY,
    text    TEXT    NOT NULL,
    kept_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
