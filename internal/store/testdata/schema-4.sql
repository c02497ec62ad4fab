BEGIN TRANSACTION;
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
, advice TEXT NOT NULL DEFAULT '', shell_id TEXT, shell_closed INTEGER NOT NULL DEFAULT 0, late_tty INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "commands" VALUES(1,'cmd_wagshv2oto6c4l662axq2osxta','env_4yfmwob5b25oz6l67ktodckfxy','dev','default','echo out; echo err >&2; exit 7','/workspace',0,1796066623426,'exited',7,'','',1796066623435,1,3747840,1,4,4,8,'',NULL,0,0);
INSERT INTO "commands" VALUES(2,'cmd_3r3gy52gjbauzrxv5qv66ya34m','env_4yfmwob5b25oz6l67ktodckfxy','dev','default','kill -TERM $$; sleep 60','/workspace',0,1796066623443,'signaled',NULL,'TERM','',1796066623447,1,3747840,1,0,0,0,'',NULL,0,0);
INSERT INTO "commands" VALUES(3,'cmd_rervjxk3atogwdyk7skssiq5ru','env_4yfmwob5b25oz6l67ktodckfxy','dev','default','echo slow; sleep 60','/workspace',0,1796066623451,'timed_out',NULL,'','',1796066623955,2,3747840,1,5,0,5,'It was ended after its timeout_ms of 500: give a longer one where it needs more.',NULL,0,0);
INSERT INTO "commands" VALUES(4,'cmd_hxshfld2fbb6c3tl7zopfdqzdm','env_4yfmwob5b25oz6l67ktodckfxy','dev','default','echo a; echo b >&2','/workspace',1,1796066623962,'exited',0,'','',1796066623967,2,3878912,1,4,0,4,'',NULL,0,0);
INSERT INTO "commands" VALUES(5,'cmd_imnquoed53fx22ruutoiq7jpqe','env_4yfmwob5b25oz6l67ktodckfxy','dev','default','seq 5000 | sed s,.*,the-same-line,','/workspace',0,1796066623976,'exited',0,'','',1796066623989,7,3878912,3,70000,0,70000,'',NULL,0,0);
INSERT INTO "commands" VALUES(6,'cmd_3zdg3gd5fsnlgalqx7a3quz3si','env_4yfmwob5b25oz6l67ktodckfxy','dev','default','printf ''\377\000''','/workspace',0,1796066624037,'exited',0,'','',1796066624041,1,3878912,1,2,0,2,'',NULL,0,0);
INSERT INTO "commands" VALUES(7,'cmd_znynt3d2on3hwmo2cfxps4l5jm','env_4yfmwob5b25oz6l67ktodckfxy','dev','default','nosuchprogram','/workspace',0,1796066624047,'exited',127,'','',1796066624053,0,3878912,1,0,41,41,'',NULL,0,0);
INSERT INTO "commands" VALUES(8,'cmd_h2nlssoedz7mhkq3xjsafafs74','env_4yfmwob5b25oz6l67ktodckfxy','dev','default','echo until; sleep 3600','/workspace',0,1796066624059,'killed',NULL,'','signal',1796066624065,2,3878912,1,6,0,6,'',NULL,0,0);
INSERT INTO "commands" VALUES(9,'cmd_vqzzwdvq3urnygh6kup2vnkfze','env_4yfmwob5b25oz6l67ktodckfxy','dev','default','cd /tmp; echo in a shell; echo err >&2; (exit 5)','/tmp',0,1796066624078,'exited',5,'','',1796066624082,1,262144,NULL,11,4,15,'','sh_j5o5zsyk45rqdjzpj5ympgit7u',0,0);
INSERT INTO "commands" VALUES(10,'cmd_47e2smdjiu7wyavz4a23m7twpy','env_4yfmwob5b25oz6l67ktodckfxy','dev','default','umask 022; mkdir -p src/deep '' spaces''; printf ''print(1)\n'' > src/app.py; printf ''\000\377'' > src/deep/bytes
printf ''ä\r\n'' > '' spaces/größe''; ln -s ../src/app.py '' spaces/link''; ln src/app.py src/hard; mkfifo fifo; : > .hidden
chmod 0751 src; chmod 0600 src/deep/bytes; chmod 0755 src/app.py; truncate -s 1M sparse; seq 200 > numbers
find . -mindepth 1 -exec touch -h -d ''2001-02-03 04:05:06'' {} +','/workspace',0,1796066624090,'exited',0,'','',1796066624110,14,4009984,2,0,0,0,'',NULL,0,0);
INSERT INTO "commands" VALUES(11,'cmd_ddwruaal3d52heynuhsd5f7tpm','env_4yfmwob5b25oz6l67ktodckfxy','dev','default','find . -mindepth 1 ! -type d -printf ''%p %y %m %n %s %l %T@\n'' | LC_ALL=C sort
find . -mindepth 1 -type d -printf ''%p %m %T@\n'' | LC_ALL=C sort; find . -type f | LC_ALL=C sort | tr ''\n'' ''\0'' | xargs -0 sha256sum','/workspace',0,1796066624116,'exited',0,'','',1796066624147,19,4009984,5,1072,0,1072,'',NULL,0,0);
INSERT INTO "commands" VALUES(12,'cmd_krew72h2lacz3db6tnsim33n5e','env_hhlhwbufekfwejtpnns6hptqwe','dev','default','umask 022; mkdir -p src/deep '' spaces''; printf ''print(1)\n'' > src/app.py; printf ''\000\377'' > src/deep/bytes
printf ''ä\r\n'' > '' spaces/größe''; ln -s ../src/app.py '' spaces/link''; ln src/app.py src/hard; mkfifo fifo; : > .hidden
chmod 0751 src; chmod 0600 src/deep/bytes; chmod 0755 src/app.py; truncate -s 1M sparse; seq 200 > numbers
find . -mindepth 1 -exec touch -h -d ''2001-02-03 04:05:06'' {} +','/workspace',0,1796066624153,'exited',0,'','',1796066624185,17,3571712,2,0,0,0,'',NULL,0,0);
INSERT INTO "commands" VALUES(13,'cmd_iuov4lksps44rfdp6ngo2c3zwu','env_hhlhwbufekfwejtpnns6hptqwe','dev','default','find . -mindepth 1 ! -type d -printf ''%p %y %m %n %s %l %T@\n'' | LC_ALL=C sort
find . -mindepth 1 -type d -printf ''%p %m %T@\n'' | LC_ALL=C sort; find . -type f | LC_ALL=C sort | tr ''\n'' ''\0'' | xargs -0 sha256sum','/workspace',0,1796066624188,'exited',0,'','',1796066624218,22,3702784,5,1072,0,1072,'',NULL,0,0);
INSERT INTO "commands" VALUES(14,'cmd_bnapmvudycltu2rarzqknqtlqq','env_4yfmwob5b25oz6l67ktodckfxy','dev','default','echo began; sleep 3600','/workspace',0,1796066624239,'running',NULL,'','',NULL,NULL,NULL,NULL,0,0,0,'',NULL,0,0);
INSERT INTO "commands" VALUES(15,'cmd_6fgvf42we3t6ihbxw4ca4rftz4','env_4yfmwob5b25oz6l67ktodckfxy','dev','default','echo began; sleep 3600','/workspace',0,1796066624244,'running',NULL,'','',NULL,NULL,NULL,NULL,0,0,0,'',NULL,0,0);
CREATE TABLE deployment (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    account    TEXT,                       -- the account that a single-account deployment serves
    cursor_key BLOB    NOT NULL,           -- hides the seq in a cursor
    flushes    INTEGER NOT NULL DEFAULT 0  -- written to make a flush a transaction
) STRICT;
INSERT INTO "deployment" VALUES(1,NULL,X'4796838C667FA33A9C2738EDC8317000',1);
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
, idle_ms INTEGER, archived_ms INTEGER, archive_bytes INTEGER, archive_content_bytes INTEGER, archive_content_files INTEGER) STRICT;
INSERT INTO "environments" VALUES(1,'env_4yfmwob5b25oz6l67ktodckfxy','dev','default','work','{"team":"red"}','active','{"shells":4}',1900004001,1796066623424,1796066624251,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "environments" VALUES(2,'env_hhlhwbufekfwejtpnns6hptqwe','dev','default','archived','null','archived','{}',1900004002,1796066624149,1796066624218,NULL,1796066624231,1104,28672,11);
CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
INSERT INTO "goose_db_version" VALUES(1,0,1,'2026-11-30 19:23:42');
INSERT INTO "goose_db_version" VALUES(2,1,1,'2026-11-30 19:23:43');
INSERT INTO "goose_db_version" VALUES(3,2,1,'2026-11-30 19:23:43');
INSERT INTO "goose_db_version" VALUES(4,3,1,'2026-11-30 19:23:43');
INSERT INTO "goose_db_version" VALUES(5,4,1,'2026-11-30 19:23:43');
CREATE TABLE host_uids (
    uid            INTEGER PRIMARY KEY,
    environment_id TEXT UNIQUE,
    released_ms    INTEGER
) STRICT;
INSERT INTO "host_uids" VALUES(1900004000,NULL,1796066623422);
INSERT INTO "host_uids" VALUES(1900004001,'env_4yfmwob5b25oz6l67ktodckfxy',NULL);
INSERT INTO "host_uids" VALUES(1900004002,'env_hhlhwbufekfwejtpnns6hptqwe',NULL);
CREATE TABLE idempotency (
    account     TEXT NOT NULL,
    profile     TEXT NOT NULL,
    operation   TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    resource_id TEXT NOT NULL, created_ms INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account, profile, operation, key)
) STRICT, WITHOUT ROWID;
INSERT INTO "idempotency" VALUES('dev','default','create_environment','archived','d689b885a3a6814e36a5657d434538ca86d670c746fe4d9afcf7a1892697a920','env_hhlhwbufekfwejtpnns6hptqwe',1796066624149);
INSERT INTO "idempotency" VALUES('dev','default','create_environment','gone','4427bb9c9213f34ee42c924eeb5851999602fcf9676c294ebf40b6fe6a4f2d3a','env_2clvkdqzvcwcwdsyacqhoaoqxm',1796066623408);
INSERT INTO "idempotency" VALUES('dev','default','create_environment','work','0d6afd986a51199357216051f8391d3316c666f45541cca5812a074255dfa19d','env_4yfmwob5b25oz6l67ktodckfxy',1796066623424);
INSERT INTO "idempotency" VALUES('dev','default','exec','run','69172ad75b4f0865429b74afd1afe27b60e6beb623fdce314c476ae52c5f06ed','cmd_wagshv2oto6c4l662axq2osxta',1796066623426);
CREATE TABLE settings (
    account TEXT    NOT NULL PRIMARY KEY,
    text    TEXT    NOT NULL,
    kept_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
INSERT INTO "shells" VALUES(1,'sh_j5o5zsyk45rqdjzpj5ympgit7u','env_4yfmwob5b25oz6l67ktodckfxy','dev','default','main','command',80,24,'/tmp',1796066624071,1796066624088,'closed','closed',NULL,'',1796066624088);
INSERT INTO "shells" VALUES(2,'sh_5wcklwkpvqppaml2jvtmtgddwi','env_4yfmwob5b25oz6l67ktodckfxy','dev','default','open','command',80,24,'/workspace',1796066624251,1796066624251,'open','',NULL,'',NULL);
CREATE INDEX environments_of_owner ON environments (account, profile);
CREATE INDEX host_uids_free ON host_uids (released_ms) WHERE environment_id IS NULL;
CREATE INDEX commands_of_owner ON commands (account, profile);
CREATE INDEX commands_of_owner_by_status ON commands (account, profile, status);
CREATE INDEX commands_of_environment ON commands (environment_id);
CREATE INDEX commands_of_environment_by_status ON commands (environment_id, status);
CREATE INDEX idempotency_of_resource ON idempotency (resource_id);
CREATE INDEX shells_of_owner ON shells (account, profile);
CREATE INDEX shells_of_owner_by_state ON shells (account, profile, state);
CREATE INDEX shells_of_environment ON shells (environment_id);
CREATE INDEX shells_of_environment_by_state ON shells (environment_id, state);
CREATE INDEX commands_of_shell ON commands (shell_id) WHERE shell_id IS NOT NULL;
CREATE INDEX commands_of_shell_by_status ON commands (shell_id, status) WHERE shell_id IS NOT NULL;
CREATE INDEX environments_by_activity ON environments (last_activity_ms) WHERE state = 'active';
CREATE INDEX commands_by_end ON commands (ended_ms) WHERE ended_ms IS NOT NULL;
CREATE INDEX commands_of_environment_by_end ON commands (environment_id, ended_ms) WHERE ended_ms IS NOT NULL;
CREATE INDEX shells_by_end ON shells (closed_ms) WHERE closed_ms IS NOT NULL;
CREATE INDEX idempotency_by_age ON idempotency (created_ms);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('goose_db_version',5);
COMMIT;
