//! Stores of the last release, opened by this program: everything that clients and operators hold of them is as the
//! release left it. `crates/test-e2e/tests/e2e/releases.rs` made the two in `fixtures`, with the release's own binary, and
//! says how to make them anew. Both stores went through the same three lives, each of which was killed: see `CASES`.
//!
//! What must be found is read from the release's own tables before the store is opened, so that nothing has to be
//! written down twice. Only `CASES`, the order of the queue and the counts are repeated here: a fixture that lacks a
//! state fails the tests as well.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use kinora_contract::{Clock as _, ManualClock, Task, TaskState};
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::{Bench as _, keys};
use kinora_store::conformance::fixtures::task;
use kinora_store::conformance::uploads::upload;
use kinora_store::{
    ChoreKind, ChoreWork, IdempotencyKey, InsertOutcome, KeyScope, ListOrder, NewTask, OpenOptions,
    PageRequest, PostgresOptions, TallyRequest, TimeSource, migrate, open,
};
use kinora_testkit::postgres::Server;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::Value;
use tempfile::TempDir;

/// The tasks by the names in their metadata, in the order of their submits, with their states as clients see them.
const CASES: [(&str, &str); 12] = [
    ("expired", "expired"),
    ("completed", "completed"),
    ("referenced", "completed"),
    ("unreachable", "failed"),
    ("far", "failed"),
    ("running", "unfinished"),
    ("waiting", "unfinished"),
    ("urgent", "unfinished"),
    ("fetched", "unfinished"),
    ("other", "unfinished"),
    ("fetching", "unfinished"),
    ("cancelled", "failed"),
];

const TASKS: &str = "SELECT id, project, phase, attempt, progress, created_at_ms, started_at_ms, finished_at_ms, \
                     expires_at_ms, metadata, spec, artifact, failure, engine, priority FROM tasks ORDER BY seq";
const USAGES: &str = "SELECT project, sum(charged_bytes), sum(CASE WHEN phase = 'expired' THEN 0 ELSE 1 END) \
                      FROM tasks GROUP BY project ORDER BY project";
const DELIVERIES: &str = "SELECT webhook, number, event, task, url, state, attempts, due_ms, tried_at_ms, status, error \
                          FROM deliveries ORDER BY webhook, number DESC";
const WEBHOOKS: &str = "SELECT id, project, url, secret, created_at_ms, dropped FROM webhooks ORDER BY created_at_ms, id";
const FILES: &str = "SELECT subject FROM chores WHERE kind = 'remove_file' ORDER BY subject";
const TALLIES: &str = "SELECT day, project, model, completed, failed, cancelled, video_ms, engine_ms FROM tallies \
                       ORDER BY day, project, model";
const KEYS: &str = "SELECT id, sha256, name, project, scopes, requests_per_minute, unfinished_max, created_at_ms, \
                    expires_at_ms, revoked_at_ms FROM api_keys ORDER BY id";
const KEY_LOG: &str = "SELECT at_ms, kind, key, name, project, successor, \"user\", host FROM key_log ORDER BY number DESC";
const SIGNING_KEY: &str = "SELECT value FROM secrets WHERE name = 'signing_key'";

type Row = Vec<String>;

/// A store of the release.
enum Release {
    Sqlite(TempDir),
    Postgres(String),
}

impl Release {
    fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf").arg(fixture("sqlite.tar.gz"));
        let done = unpack.arg("-C").arg(folder.path()).status().unwrap();
        assert!(done.success(), "tar");
        Self::Sqlite(folder)
    }

    fn postgres() -> Self {
        let server = Server::shared();
        let url = server.database();
        server.run(
            &url,
            &std::fs::read_to_string(fixture("postgres.sql")).unwrap(),
        );
        Self::Postgres(url)
    }

    /// The columns of each row as texts; null is empty, and bytes are hexadecimal.
    fn rows(&self, query: &str) -> Vec<Row> {
        let folder = match self {
            Self::Sqlite(folder) => folder,
            Self::Postgres(url) => {
                let rows = Server::shared().run(url, query);
                let columns = |row: &str| {
                    row.split('|')
                        .map(|text| text.replacen("\\x", "", 1))
                        .collect()
                };
                return rows.lines().map(columns).collect();
            }
        };
        let store = Connection::open(folder.path().join("kinora.db")).unwrap();
        let mut query = store.prepare(query).unwrap();
        let columns = query.column_count();
        let rows = query.query_map([], |row| {
            (0..columns)
                .map(|column| row.get_ref(column).map(shown))
                .collect()
        });
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    }

    /// Its schema and the rows of all tables but those that count openings and connections.
    fn contents(&self) -> String {
        let [schema, tables] = match self {
            Self::Sqlite(_) => [
                "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name",
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
            ],
            Self::Postgres(_) => [
                "SELECT attrelid::regclass, attname, atttypid::regtype FROM pg_attribute \
                 WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace) \
                 ORDER BY attrelid::regclass::text, attnum",
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname",
            ],
        };
        let mut contents = format!("{:#?}\n", self.rows(schema));
        for table in self.rows(tables).into_iter().flatten() {
            if !["counters", "gaps", "lanes", "queue"].contains(&table.as_str()) {
                let mut rows = self.rows(&format!("SELECT * FROM {table}"));
                rows.sort();
                contents += &format!("{table} {rows:#?}\n");
            }
        }
        contents
    }

    async fn open(&self, clock: &Arc<ManualClock>) -> Site {
        let url = match self {
            Self::Sqlite(folder) => format!("sqlite:{}", folder.path().join("kinora.db").display()),
            Self::Postgres(url) => url.clone(),
        };
        migrate(&url).await.unwrap();
        let options = OpenOptions {
            postgres: PostgresOptions {
                time: TimeSource::Clock,
                ..PostgresOptions::default()
            },
            ..OpenOptions::new(clock.clone())
        };
        Site::of(open(&url, &options).await.unwrap(), clock.clone())
    }
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

fn shown(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(bytes) => hex(bytes),
        ValueRef::Real(_) => panic!("a fraction"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(hex: &str) -> [u8; 32] {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    std::array::from_fn(|number| byte(2 * number))
}

/// A number, or nothing.
fn text<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The release's store before anything opens it, and after two openings, the second of which must change nothing.
async fn upgraded(release: fn() -> Release) -> (Release, Release, Site) {
    let (before, after) = (release(), release());
    // The release's last change: the sweep that expired a task.
    let last_ms = "SELECT max(expires_at_ms) FROM tasks WHERE phase = 'expired'";
    let last_ms = before.rows(last_ms)[0][0].parse().unwrap();
    let clock = Arc::new(ManualClock::at(last_ms));
    drop(after.open(&clock).await);
    let once = after.contents();
    drop(after.open(&clock).await);
    assert_eq!(
        after.contents(),
        once,
        "the second opening changed something"
    );
    let site = after.open(&clock).await;
    (before, after, site)
}

/// Longer than every lease.
const HOUR_MS: u64 = 3_600_000;

const BOTH: [fn() -> Release; 2] = [Release::sqlite, Release::postgres];

/// A task's name and its state, of a row of [`TASKS`]. An expired one has lost its metadata.
fn case_of(row: &Row) -> (String, &str) {
    let state = match row[2].as_str() {
        "waiting" | "running" => "unfinished",
        ended => ended,
    };
    let case = json(&row[9])["case"]
        .as_str()
        .unwrap_or("expired")
        .to_owned();
    (case, state)
}

async fn task_of(site: &Site, row: &Row) -> Arc<Task> {
    let found = site.tasks.get(&row[1], row[0].parse().unwrap()).await;
    found.unwrap().expect("the task is there")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_task_of_the_release_is_as_it_was() {
    for release in BOTH {
        let (before, _after, site) = upgraded(release).await;
        let rows = before.rows(TASKS);
        let cases = rows.iter().map(case_of);
        let cases: Vec<_> = cases.collect();
        assert!(
            cases
                .iter()
                .map(|(case, state)| (case.as_str(), *state))
                .eq(CASES),
            "{cases:?}"
        );
        for row in &rows {
            assert_task(row, &*task_of(&site, row).await);
        }
        for project in ["default", "other"] {
            let listed = site.tasks.list(PageRequest {
                project: project.to_owned(),
                after: None,
                limit: 100,
                order: ListOrder::Ascending,
            });
            let listed = listed.await.unwrap().tasks;
            let listed = listed.iter().map(|task| task.id.to_string());
            let kept = rows
                .iter()
                .filter(|row| row[1] == project && row[2] != "expired");
            assert!(listed.eq(kept.map(|row| row[0].clone())), "{project}");
        }
    }
}

/// That a task is as its row says. One that ran when its process died waits again, or runs until its lease ends.
fn assert_task(row: &Row, task: &Task) {
    let (case, spec) = (&case_of(row).0, json(&row[10]));
    let shown = [
        task.attempt.to_string(),
        task.progress.to_string(),
        task.created_at_ms.to_string(),
        text(task.started_at_ms),
        text(task.finished_at_ms),
        text(task.expires_at_ms),
    ];
    assert_eq!(shown, row[3..9], "{case}");
    assert_eq!(text(task.engine.clone()), row[13], "{case}");
    assert_eq!(
        serde_json::to_value(&task.metadata).unwrap(),
        json(&row[9]),
        "{case}"
    );
    assert_eq!(task.spec.prompt, spec["prompt"].as_str().unwrap(), "{case}");
    assert_eq!(task.spec.model, spec["model"].as_str().unwrap(), "{case}");
    assert_eq!(Value::from(task.spec.seed), spec["seed"], "{case}");
    let priority = if case == "urgent" { "high" } else { "normal" };
    assert_eq!(task.priority.name(), priority, "{case}");
    match &task.state {
        TaskState::Waiting => assert!(row[2] == "waiting" || row[2] == "running", "{case}"),
        TaskState::Running => assert_eq!(row[2], "running", "{case}"),
        TaskState::Expired => assert_eq!(row[2], "expired", "{case}"),
        TaskState::Failed(failure) => {
            assert_eq!(failure.code, json(&row[12])["code"].as_str().unwrap());
        }
        TaskState::Completed(artifact) => {
            let stored = json(&row[11]);
            assert_eq!(
                (&artifact.first_frame, &artifact.last_frame),
                (&None, &None)
            );
            for (name, file) in [
                ("video", &artifact.video),
                ("thumbnail", &artifact.thumbnail),
                ("spritesheet", &artifact.spritesheet),
            ] {
                assert_eq!(file.key, stored[name]["key"].as_str().unwrap(), "{case}");
                assert_eq!(Value::from(file.bytes), stored[name]["bytes"], "{case}");
                assert_eq!(
                    file.sha256,
                    stored[name]["sha256"].as_str().unwrap(),
                    "{case}"
                );
            }
        }
    }
}

/// How many tasks are before each that waits for its first worker; and the order of the claims once all leases have ended.
/// Which task ran when the release was killed was a matter of turns: of each project one.
type Queue = ([(u64, &'static str); 4], [&'static str; 5]);
const QUEUES: [Queue; 2] = [
    (
        [
            (1, "other"),
            (3, "fetching"),
            (3, "waiting"),
            (4, "fetched"),
        ],
        ["urgent", "other", "running", "waiting", "fetched"],
    ),
    (
        [
            (0, "fetching"),
            (0, "urgent"),
            (1, "waiting"),
            (2, "fetched"),
        ],
        ["other", "urgent", "running", "waiting", "fetched"],
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_queue_of_the_release_goes_on_in_its_order() {
    for (release, (positions, order)) in BOTH.into_iter().zip(QUEUES) {
        let (before, _after, site) = upgraded(release).await;
        let rows = before.rows(TASKS);
        let ids: Vec<_> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
        let found = site.tasks.positions(&ids).await.unwrap();
        let cases = rows.iter().map(|row| case_of(row).0);
        let named = cases.clone().zip(found);
        let mut named: Vec<_> = named
            .filter_map(|(case, place)| Some((place?, case)))
            .collect();
        named.sort();
        assert_eq!(
            named,
            positions.map(|(place, case)| (place, case.to_owned()))
        );

        let cases: BTreeMap<_, _> = ids.iter().copied().zip(cases).collect();
        site.pass_until(site.clock.now_ms() + HOUR_MS);
        site.sweep(site.clock.now_ms()).await;
        let claims = site.claim(10).await;
        let claimed = claims.iter().map(|claim| cases[&claim.task.id].as_str());
        assert_eq!(claimed.collect::<Vec<_>>(), order);
        let fetches = site.take(10).await;
        let taken = fetches.iter().map(|fetch| cases[&fetch.task.id].as_str());
        assert_eq!(taken.collect::<Vec<_>>(), ["fetching"]);
        for claim in &claims {
            site.complete(claim).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_of_a_submit_to_the_release_answers_its_task() {
    for release in BOTH {
        let (before, _after, site) = upgraded(release).await;
        let bindings = match before {
            Release::Sqlite(_) => {
                "SELECT i.project, key, fingerprint, id FROM idempotency i JOIN tasks ON seq = task_seq ORDER BY key"
            }
            Release::Postgres(_) => {
                "SELECT project, key, fingerprint, task FROM idempotency ORDER BY key"
            }
        };
        let bindings = before.rows(bindings);
        let bound: Vec<&str> = bindings.iter().map(|row| row[1].as_str()).collect();
        assert_eq!(
            bound,
            ["order-1", "order-3"],
            "that of a deleted task is free"
        );
        for row in &bindings {
            let same = IdempotencyKey {
                key: row[1].clone(),
                fingerprint: bytes_of(&row[2]),
                bound_ms: 1,
            };
            let found = site.tasks.find_twin(&row[0], &same).await.unwrap();
            assert_eq!(found.unwrap().id.to_string(), row[3]);
            let again = |idempotency| NewTask {
                idempotency: Some(idempotency),
                ..task(1, &row[0])
            };
            let other = IdempotencyKey {
                fingerprint: [7; 32],
                ..same.clone()
            };
            let replayed = site.tasks.insert(again(same)).await.unwrap();
            assert!(
                matches!(&replayed, InsertOutcome::Replayed(task) if task.id.to_string() == row[3]),
                "{replayed:?}"
            );
            let refused = site.tasks.insert(again(other)).await.unwrap();
            assert!(matches!(refused, InsertOutcome::KeyReused), "{refused:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_and_deliveries_of_the_release_are_as_they_were() {
    for release in BOTH {
        let (before, _after, site) = upgraded(release).await;
        let webhooks = site.webhooks.webhooks().await.unwrap();
        let mut deliveries = Vec::new();
        for webhook in &webhooks {
            for one in site.webhooks.deliveries(&webhook.id, 100).await.unwrap() {
                let (at, status, error) = match one.last {
                    None => (None, None, None),
                    Some(last) => (
                        Some(last.at_ms),
                        last.answer.as_ref().ok().copied(),
                        last.answer.err(),
                    ),
                };
                deliveries.push(vec![
                    webhook.id.clone(),
                    one.number.to_string(),
                    one.event,
                    text(one.task),
                    text(one.url),
                    one.state.name().to_owned(),
                    one.attempts.to_string(),
                    one.due_ms.to_string(),
                    text(at),
                    text(status),
                    text(error),
                ]);
            }
        }
        deliveries.sort_by(|one, other| one[0].cmp(&other[0]));
        assert_eq!(deliveries, before.rows(DELIVERIES));
        let mut states: Vec<_> = deliveries.iter().map(|row| row[5].as_str()).collect();
        states.sort_unstable();
        states.dedup();
        assert_eq!(states, ["delivered", "pending", "waiting"]);
        let webhooks = webhooks.into_iter().map(|one| {
            vec![
                one.id,
                one.project,
                text(one.url),
                hex(one.secret.bytes()),
                one.created_at_ms.to_string(),
                one.dropped.to_string(),
            ]
        });
        assert_eq!(webhooks.collect::<Vec<_>>(), before.rows(WEBHOOKS));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chores_of_the_release_are_done() {
    for release in BOTH {
        let (before, _after, site) = upgraded(release).await;
        site.pass_until(site.clock.now_ms() + 2 * HOUR_MS);
        let mut files = keys(&site.take_chores(ChoreKind::RemoveFile).await);
        files.sort();
        let left: Vec<_> = before.rows(FILES).into_iter().flatten().collect();
        assert_eq!(left.len(), 3, "a video, a thumbnail and a spritesheet");
        // Besides those that an interrupted run may have left.
        files.retain(|file| left.contains(file));
        assert_eq!(files, left);
        let models = vec!["far-1".to_owned()];
        let jobs = site.take_chores(ChoreKind::CallOff { models }).await;
        let jobs = jobs.into_iter().map(|chore| match chore.work {
            ChoreWork::CallOff(job) => vec![job.task.to_string(), job.model, job.ticket],
            other => panic!("{other:?}"),
        });
        let jobs: Vec<_> = jobs.collect();
        assert_eq!(jobs.len(), 1);
        let ticket = match before {
            Release::Sqlite(_) => "ticket",
            Release::Postgres(_) => "convert_from(ticket, 'UTF8')",
        };
        let left = format!("SELECT subject, model, {ticket} FROM chores WHERE kind = 'call_off'");
        assert_eq!(jobs, before.rows(&left));
        assert_eq!(site.take_chores(ChoreKind::LookForOrphans).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sums_of_the_release_are_as_they_were() {
    for release in BOTH {
        let (before, _after, site) = upgraded(release).await;
        for row in before.rows(USAGES) {
            let usage = site.tasks.usage(&row[0]).await.unwrap();
            assert_eq!(
                [usage.bytes.to_string(), usage.tasks.to_string()],
                row[1..],
                "{row:?}"
            );
        }
        let counts = site.tasks.counts().await.unwrap();
        let unfinished = |project: &str| {
            let count = counts.projects[project];
            count.waiting + count.running
        };
        assert_eq!([unfinished("default"), unfinished("other")], [4, 2]);
        let tallies = site
            .operations
            .tallies(&TallyRequest::default())
            .await
            .unwrap();
        let rows = tallies.iter().map(|row| {
            let sums = &row.tally;
            let sums = [
                sums.completed,
                sums.failed,
                sums.cancelled,
                sums.video_ms,
                sums.engine_ms,
            ];
            let named = [row.day.to_string(), row.project.clone(), row.model.clone()];
            named
                .into_iter()
                .chain(sums.map(|sum| sum.to_string()))
                .collect::<Row>()
        });
        assert_eq!(rows.collect::<Vec<_>>(), before.rows(TALLIES));
        let completed: u64 = tallies.iter().map(|row| row.tally.completed).sum();
        assert_eq!(completed, 4, "the expired and the deleted one count");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_and_secrets_of_the_release_are_as_they_were() {
    for release in BOTH {
        let (before, _after, site) = upgraded(release).await;
        let signing_key = site.secrets.signing_key().await.unwrap();
        assert_eq!(
            vec![vec![hex(&signing_key.unwrap().0)]],
            before.rows(SIGNING_KEY)
        );
        let mut keys: Vec<Row> = Vec::new();
        for stored in site.keys.list_keys().await.unwrap() {
            let key = stored.key;
            let found = site.keys.find_key(&key.sha256, 0).await.unwrap().unwrap();
            assert_eq!(found.key.id, key.id);
            let scopes: Vec<_> = key.scopes.into_iter().map(KeyScope::name).collect();
            keys.push(vec![
                key.id,
                hex(&key.sha256),
                key.name,
                key.project,
                scopes.join(" "),
                text(key.requests_per_minute),
                text(key.unfinished_max),
                key.created_at_ms.to_string(),
                text(key.expires_at_ms),
                text(stored.revoked_at_ms),
            ]);
        }
        keys.sort();
        assert_eq!(keys, before.rows(KEYS));
        assert_eq!(
            keys.len(),
            5,
            "the first, another, one before and after its rotation, a revoked one"
        );
        let log = site
            .operations
            .key_log(None)
            .await
            .unwrap()
            .into_iter()
            .map(|one| {
                vec![
                    one.at_ms.to_string(),
                    one.kind.name().to_owned(),
                    one.key,
                    one.name,
                    one.project,
                    text(one.successor),
                    one.by.user,
                    one.by.host,
                ]
            });
        assert_eq!(log.collect::<Vec<_>>(), before.rows(KEY_LOG));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_an_upgraded_store_name_uploaded_files() {
    for release in BOTH {
        let (_before, _after, site) = upgraded(release).await;
        let usage = site.tasks.usage("other").await.unwrap();
        let file = upload(&site, 1, "other").await;
        let charged = site.tasks.usage("other").await.unwrap();
        assert_eq!(charged.bytes, usage.bytes + file.bytes);
        let naming = NewTask {
            files: vec![file.id],
            ..task(1, "other")
        };
        site.submit_all([naming]).await;
        assert!(site.files.delete_file("other", file.id).await.unwrap());
        assert!(!site.files_due().await.contains(&file.blob_key));
    }
}
