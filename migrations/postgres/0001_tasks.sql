-- Tasks, their queue, idempotency keys, chores, API keys. Times are milliseconds since 1970 by the server's clock.

-- One row: who this store is, and what claims are serialised by. Whoever locks it may claim.
CREATE TABLE queue (
    one          boolean PRIMARY KEY DEFAULT true CHECK (one),
    identity     bigint  NOT NULL,            -- drawn once: tells apart stores that share a result store
    token        bigint  NOT NULL DEFAULT 0,  -- the largest fencing token given out
    turn_now     bigint  NOT NULL DEFAULT 0,  -- where the task that was started last began, in cost units
    alone_worker text,                        -- of the task that waits for this worker to have nothing else
    alone_task   text
) WITH (fillfactor = 50);

INSERT INTO queue (identity) VALUES ((random() * 9007199254740991)::bigint);

-- One row per writing connection of a process: whether its last transaction was committed.
CREATE SEQUENCE lane_ids;
CREATE TABLE lanes (
    id    bigint PRIMARY KEY,
    batch bigint NOT NULL,
    at_ms bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- One row per project that ever had a task: sums over its tasks, kept in the transactions that change them.
CREATE TABLE projects (
    name       text   PRIMARY KEY COLLATE "C",
    bytes      bigint NOT NULL DEFAULT 0,  -- of all its tasks
    tasks      bigint NOT NULL DEFAULT 0,  -- those that are not expired
    waiting    bigint NOT NULL DEFAULT 0,
    unfinished bigint NOT NULL DEFAULT 0,
    turn       bigint NOT NULL DEFAULT 0,  -- its clock among the projects, in cost units
    last_fetch bigint NOT NULL DEFAULT 0,  -- token of its last fetch, while it has unfinished tasks
    newest_ms  bigint NOT NULL DEFAULT 0,  -- creation time of its newest task ever accepted
    newest_seq bigint NOT NULL DEFAULT 0   -- place of its last task
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

CREATE INDEX projects_waiting ON projects (name) WHERE waiting > 0;

CREATE SEQUENCE task_seq;
CREATE TABLE tasks (
    id                    text     PRIMARY KEY COLLATE "C",  -- sorts by creation
    seq                   bigint   NOT NULL,                 -- order of acceptance: the place in the queue
    project               text     NOT NULL COLLATE "C",
    model                 text     NOT NULL COLLATE "C",
    phase                 text     NOT NULL
                          CHECK (phase IN ('waiting', 'running', 'completed', 'failed', 'expired')),
    -- 1: can be claimed, 2: its references are wanted, 3: they are away, 4: it runs; null once it has ended.
    place                 smallint,
    progress              smallint NOT NULL,
    attempt               bigint   NOT NULL,
    deaths                bigint   NOT NULL,
    engine                text,
    created_at_ms         bigint   NOT NULL,
    started_at_ms         bigint,
    finished_at_ms        bigint,
    expires_at_ms         bigint,
    lease_token           bigint,
    lease_until_ms        bigint,
    lease_until_steady_ms bigint,
    worker                text,
    artifact              text,              -- JSON
    failure               text,              -- JSON
    warnings              text,              -- JSON
    ticket                bytea,
    spec_version          bigint   NOT NULL,
    spec                  text     NOT NULL, -- JSON
    metadata              text     NOT NULL, -- JSON
    cost                  bigint   NOT NULL, -- of a run, in units of the turns
    reference_bytes       bigint   NOT NULL,
    charged_bytes         bigint   NOT NULL,
    -- 0: at hand, 1: wanted, 2: away until a time, under a token while they are being fetched.
    fetch_state           smallint NOT NULL,
    fetch_tries           bigint   NOT NULL,
    fetch_until_ms        bigint,
    fetch_token           bigint
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1,
        autovacuum_analyze_scale_factor = 0.02);

CREATE INDEX tasks_of_project ON tasks (project, id) WHERE phase <> 'expired';
CREATE INDEX tasks_claimable ON tasks (project, model, seq) WHERE place = 1;
CREATE INDEX tasks_wanted ON tasks (project, model, seq) WHERE place = 2;
CREATE INDEX tasks_away ON tasks (fetch_until_ms) WHERE place = 3;
CREATE INDEX tasks_running ON tasks (worker) WHERE place = 4;
CREATE INDEX tasks_waiting ON tasks (created_at_ms) WHERE place IN (1, 2, 3);
CREATE INDEX tasks_by_expiry ON tasks (phase, expires_at_ms, seq) WHERE expires_at_ms IS NOT NULL;

CREATE TABLE idempotency (
    project       text   NOT NULL COLLATE "C",
    key           text   NOT NULL COLLATE "C",
    fingerprint   bytea  NOT NULL,
    expires_at_ms bigint NOT NULL,
    task          text   NOT NULL COLLATE "C",
    PRIMARY KEY (project, key)
);

CREATE INDEX idempotency_of_task ON idempotency (task);
CREATE INDEX idempotency_by_expiry ON idempotency (expires_at_ms);

-- Pictures of work in progress: they need not outlive the server.
CREATE UNLOGGED TABLE previews (
    task    text  PRIMARY KEY COLLATE "C",
    picture bytea NOT NULL
);

-- What is to be done outside of the store. A chore is leased by whoever does it, and is gone when it is settled.
CREATE SEQUENCE chore_tokens;
CREATE TABLE chores (
    number   bigserial PRIMARY KEY,
    kind     text   NOT NULL CHECK (kind IN ('remove_file', 'call_off', 'look_for_orphans')),
    subject  text   NOT NULL,            -- blob key, task id, or empty
    model    text,                       -- of an upstream job
    ticket   bytea,                      -- its name at the upstream
    due_ms   bigint NOT NULL DEFAULT 0,  -- not before then; the end of the lease while there is one
    attempts bigint NOT NULL DEFAULT 0,
    token    bigint,                     -- of the lease
    UNIQUE (kind, subject)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX chores_by_due ON chores (kind, due_ms, number);

INSERT INTO chores (kind, subject) VALUES ('look_for_orphans', '');

-- Creation times between which this store accepted no task, although it may have stood still at an older state
-- meanwhile. `current`: the one since the last opening.
CREATE TABLE gaps (
    after_ms  bigint  PRIMARY KEY,
    before_ms bigint  NOT NULL,
    current   boolean NOT NULL
);

CREATE TABLE api_keys (
    number              bigserial NOT NULL,
    id                  text   PRIMARY KEY,
    sha256              bytea  NOT NULL UNIQUE CHECK (length(sha256) = 32),
    name                text   NOT NULL,
    project             text   NOT NULL,
    scopes              text   NOT NULL,   -- names, separated by spaces
    models              text,              -- JSON array; null for all
    requests_per_minute bigint,
    unfinished_max      bigint,
    created_at_ms       bigint NOT NULL,
    expires_at_ms       bigint,
    revoked_at_ms       bigint,
    last_used_at_ms     bigint
);

-- Processes that run tasks, as they announce themselves.
CREATE TABLE workers (
    id        text   PRIMARY KEY COLLATE "C",
    announced text   NOT NULL, -- JSON
    seen_ms   bigint NOT NULL,
    until_ms  bigint NOT NULL  -- it counts as dead from then on
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Rate limits: what the processes may still take of each key's requests. A crash of the server refills them.
CREATE UNLOGGED TABLE allowances (
    key     text   PRIMARY KEY COLLATE "C",
    level   bigint NOT NULL,  -- 60,000 for each request
    granted bigint NOT NULL,  -- by the last statement
    at_ms   bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Drawn once, shared by all processes.
CREATE TABLE secrets (
    name  text  PRIMARY KEY,
    value bytea NOT NULL
);
