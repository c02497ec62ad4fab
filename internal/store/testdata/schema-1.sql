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
) STRICT;
INSERT INTO "commands" VALUES(1,'cmd_4wwqq2z5v4mfn2ghl4iy6ityjq','env_wpom4vnluuzeo65twg6nvz2cu4','dev','default','echo out; echo err >&2; exit 7','/workspace',0,1796066620380,'exited',7,'','',1796066620394,2,3284992,1,4,4,8);
INSERT INTO "commands" VALUES(2,'cmd_sesmp4ll7uyih3hnfndztmlxde','env_wpom4vnluuzeo65twg6nvz2cu4','dev','default','kill -TERM $$; sleep 60','/workspace',0,1796066620401,'signaled',NULL,'TERM','',1796066620405,2,3416064,1,0,0,0);
INSERT INTO "commands" VALUES(3,'cmd_zrwtcnqhsnhw3x5lzicknpcyji','env_wpom4vnluuzeo65twg6nvz2cu4','dev','default','echo slow; sleep 60','/workspace',0,1796066620411,'timed_out',NULL,'','',1796066620915,3,3416064,1,5,0,5);
INSERT INTO "commands" VALUES(4,'cmd_ff5ms62nvalwhdswlj57rgumou','env_wpom4vnluuzeo65twg6nvz2cu4','dev','default','echo a; echo b >&2','/workspace',1,1796066620921,'exited',0,'','',1796066620927,2,3416064,1,4,0,4);
INSERT INTO "commands" VALUES(5,'cmd_omowaji5xphmsiyjomrt6x6cja','env_wpom4vnluuzeo65twg6nvz2cu4','dev','default','seq 5000 | sed s,.*,the-same-line,','/workspace',0,1796066620933,'exited',0,'','',1796066620944,7,3416064,3,70000,0,70000);
INSERT INTO "commands" VALUES(6,'cmd_isomxduha53ktztvhhxrscivku','env_wpom4vnluuzeo65twg6nvz2cu4','dev','default','printf ''\377\000''','/workspace',0,1796066620980,'exited',0,'','',1796066620983,1,3416064,1,2,0,2);
INSERT INTO "commands" VALUES(7,'cmd_z5pcijonsfwlkwqtgbmqtklrva','env_wpom4vnluuzeo65twg6nvz2cu4','dev','default','nosuchprogram','/workspace',0,1796066620987,'exited',127,'','',1796066620989,0,3416064,1,0,41,41);
INSERT INTO "commands" VALUES(8,'cmd_3bmqzlyxh44h6gmlpqx7v43dkm','env_wpom4vnluuzeo65twg6nvz2cu4','dev','default','echo until; sleep 3600','/workspace',0,1796066620993,'killed',NULL,'','signal',1796066620998,1,3547136,1,6,0,6);
INSERT INTO "commands" VALUES(10,'cmd_dvqfyhh5pqssvmyeg7ggpfp4aa','env_wpom4vnluuzeo65twg6nvz2cu4','dev','default','umask 022; mkdir -p src/deep '' spaces''; printf ''print(1)\n'' > src/app.py; printf ''\000\377'' > src/deep/bytes
printf ''ä\r\n'' > '' spaces/größe''; ln -s ../src/app.py '' spaces/link''; ln src/app.py src/hard; mkfifo fifo; : > .hidden
chmod 0751 src; chmod 0600 src/deep/bytes; chmod 0755 src/app.py; truncate -s 1M sparse; seq 200 > numbers
find . -mindepth 1 -exec touch -h -d ''2001-02-03 04:05:06'' {} +','/workspace',0,1796066621022,'exited',0,'','',1796066621051,17,3678208,2,0,0,0);
INSERT INTO "commands" VALUES(11,'cmd_jdnmtwm4fahvnl7bfdmrtkqp5y','env_wpom4vnluuzeo65twg6nvz2cu4','dev','default','find . -mindepth 1 ! -type d -printf ''%p %y %m %n %s %l %T@\n'' | LC_ALL=C sort
find . -mindepth 1 -type d -printf ''%p %m %T@\n'' | LC_ALL=C sort; find . -type f | LC_ALL=C sort | tr ''\n'' ''\0'' | xargs -0 sha256sum','/workspace',0,1796066621059,'exited',0,'','',1796066621147,19,3678208,6,1072,0,1072);
INSERT INTO "commands" VALUES(12,'cmd_sm4wawzlbbewoadr4utt3n6kem','env_ga4fslghv3tlqgvhdlmqvpuihm','dev','default','umask 022; mkdir -p src/deep '' spaces''; printf ''print(1)\n'' > src/app.py; printf ''\000\377'' > src/deep/bytes
printf ''ä\r\n'' > '' spaces/größe''; ln -s ../src/app.py '' spaces/link''; ln src/app.py src/hard; mkfifo fifo; : > .hidden
chmod 0751 src; chmod 0600 src/deep/bytes; chmod 0755 src/app.py; truncate -s 1M sparse; seq 200 > numbers
find . -mindepth 1 -exec touch -h -d ''2001-02-03 04:05:06'' {} +','/workspace',0,1796066621152,'exited',0,'','',1796066621175,14,3211264,2,0,0,0);
INSERT INTO "commands" VALUES(13,'cmd_n5emfbwqgvra7ihmomxgdk57yq','env_ga4fslghv3tlqgvhdlmqvpuihm','dev','default','find . -mindepth 1 ! -type d -printf ''%p %y %m %n %s %l %T@\n'' | LC_ALL=C sort
find . -mindepth 1 -type d -printf ''%p %m %T@\n'' | LC_ALL=C sort; find . -type f | LC_ALL=C sort | tr ''\n'' ''\0'' | xargs -0 sha256sum','/workspace',0,1796066621177,'exited',0,'','',1796066621214,17,3284992,5,1072,0,1072);
INSERT INTO "commands" VALUES(14,'cmd_65u465lobyuqh57z7uhdcoqe7i','env_wpom4vnluuzeo65twg6nvz2cu4','dev','default','echo began; sleep 3600','/workspace',0,1796066621217,'lost',NULL,'','service_stopped',1796066621518,NULL,NULL,NULL,0,0,0);
INSERT INTO "commands" VALUES(15,'cmd_iwfeiym2hznuiettpedjjqgy2u','env_wpom4vnluuzeo65twg6nvz2cu4','dev','default','echo began; sleep 3600','/workspace',0,1796066621222,'lost',NULL,'','service_stopped',1796066621518,NULL,NULL,NULL,0,0,0);
CREATE TABLE deployment (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    account    TEXT,                       -- the account that a single-account deployment serves
    cursor_key BLOB    NOT NULL,           -- hides the seq in a cursor
    flushes    INTEGER NOT NULL DEFAULT 0  -- written to make a flush a transaction
) STRICT;
INSERT INTO "deployment" VALUES(1,NULL,X'17E0A19D85F2ED0B4853578D29C62526',2);
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
INSERT INTO "environments" VALUES(1,'env_wpom4vnluuzeo65twg6nvz2cu4','dev','default','work','{"team":"red"}','active','{"shells":4}',1900003001,1796066620374,1796066621231);
INSERT INTO "environments" VALUES(2,'env_ga4fslghv3tlqgvhdlmqvpuihm','dev','default','archived','null','active','{}',1900003002,1796066621149,1796066621214);
CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
INSERT INTO "goose_db_version" VALUES(1,0,1,'2026-11-30 19:23:40');
INSERT INTO "goose_db_version" VALUES(2,1,1,'2026-11-30 19:23:40');
CREATE TABLE host_uids (
    uid            INTEGER PRIMARY KEY,
    environment_id TEXT UNIQUE,
    released_ms    INTEGER
) STRICT;
INSERT INTO "host_uids" VALUES(1900003000,NULL,1796066620368);
INSERT INTO "host_uids" VALUES(1900003001,'env_wpom4vnluuzeo65twg6nvz2cu4',NULL);
INSERT INTO "host_uids" VALUES(1900003002,'env_ga4fslghv3tlqgvhdlmqvpuihm',NULL);
CREATE TABLE idempotency (
    account     TEXT NOT NULL,
    profile     TEXT NOT NULL,
    operation   TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    PRIMARY KEY (account, profile, operation, key)
) STRICT, WITHOUT ROWID;
INSERT INTO "idempotency" VALUES('dev','default','create_environment','archived','d689b885a3a6814e36a5657d434538ca86d670c746fe4d9afcf7a1892697a920','env_ga4fslghv3tlqgvhdlmqvpuihm');
INSERT INTO "idempotency" VALUES('dev','default','create_environment','gone','4427bb9c9213f34ee42c924eeb5851999602fcf9676c294ebf40b6fe6a4f2d3a','env_exgpokddde3esivlsfqfv3vngu');
INSERT INTO "idempotency" VALUES('dev','default','create_environment','work','0d6afd986a51199357216051f8391d3316c666f45541cca5812a074255dfa19d','env_wpom4vnluuzeo65twg6nvz2cu4');
INSERT INTO "idempotency" VALUES('dev','default','exec','run','8bddd6fd921162953f1711a937375f57473398e0b2a5a0379ff3cff1c7350588','cmd_4wwqq2z5v4mfn2ghl4iy6ityjq');
CREATE INDEX environments_of_owner ON environments (account, profile);
CREATE INDEX host_uids_free ON host_uids (released_ms) WHERE environment_id IS NULL;
CREATE INDEX commands_of_owner ON commands (account, profile);
CREATE INDEX commands_of_owner_by_status ON commands (account, profile, status);
CREATE INDEX commands_of_environment ON commands (environment_id);
CREATE INDEX commands_of_environment_by_status ON commands (environment_id, status);
CREATE INDEX idempotency_of_resource ON idempotency (resource_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('goose_db_version',2);
COMMIT;
