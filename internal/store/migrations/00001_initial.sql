-- Times are milliseconds since 1970, UTC. A seq is the order in which rows were
-- taken; it is never shown to a caller.

-- +goose Up

-- What is true of the whole deployment: one row.
CREATE TABLE deployment (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    account    TEXT,                       -- the account that a single-account deployment serves
    cursor_key BLOB    NOT NULL,           -- hides the seq in a cursor
    flushes    INTEGER NOT NULL DEFAULT 0  -- written to make a flush a transaction
) STRICT;
INSERT INTO deployment (one, cursor_key) VALUES (1, randomblob(16));

CREATE TABLE environments (
    seq              INTEGER PRIMARY KEY,
    id               TEXT    NOT NULL UNIQUE,
    account          TEXT    NOT NULL,
    profile          TEXT    NOT NULL,
    name             TEXT    NOT NULL,
    labels           TEXT    NOT NULL,  -- JSON object of strings
    state            TEXT    NOT NULL,
    limits           TEXT    NOT NULL,  -- JSON object, by the names of the limits
    host_uid         INTEGER NOT NULL,  -- 0: none
    created_ms       INTEGER NOT NULL,
    last_activity_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX environments_of_owner ON environments (account, profile);

-- A uid is taken while it has an environment_id, also after that environment
-- was deleted: until its files are gone.
CREATE TABLE host_uids (
    uid            INTEGER PRIMARY KEY,
    environment_id TEXT UNIQUE,
    released_ms    INTEGER
) STRICT;
CREATE INDEX host_uids_free ON host_uids (released_ms) WHERE environment_id IS NULL;

CREATE TABLE commands (
    seq               INTEGER PRIMARY KEY,
    id                TEXT    NOT NULL UNIQUE,
    environment_id    TEXT    NOT NULL REFERENCES environments (id),
    account           TEXT    NOT NULL,
    profile           TEXT    NOT NULL,
    command           TEXT    NOT NULL,
    cwd               TEXT    NOT NULL,
    merge_stderr      INTEGER NOT NULL,
    started_ms        INTEGER NOT NULL,
    status            TEXT    NOT NULL,
    exit_code         INTEGER,
    signal            TEXT    NOT NULL DEFAULT '',
    reason            TEXT    NOT NULL DEFAULT '',
    ended_ms          INTEGER,
    cpu_ms            INTEGER,          -- null: its usage is not known
    peak_memory_bytes INTEGER,
    processes         INTEGER,
    late_stdout       INTEGER NOT NULL DEFAULT 0,
    late_stderr       INTEGER NOT NULL DEFAULT 0,
    late_all          INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX commands_of_owner ON commands (account, profile);
CREATE INDEX commands_of_owner_by_status ON commands (account, profile, status);
CREATE INDEX commands_of_environment ON commands (environment_id);
CREATE INDEX commands_of_environment_by_status ON commands (environment_id, status);

-- What was made under a key. The key of an environment outlives it, so that a
-- late retry does not make a second one.
CREATE TABLE idempotency (
    account     TEXT NOT NULL,
    profile     TEXT NOT NULL,
    operation   TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    PRIMARY KEY (account, profile, operation, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_of_resource ON idempotency (resource_id);
