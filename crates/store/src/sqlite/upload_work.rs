//! How much work a project's files are, however many files others have: in steps of SQLite's virtual machine,
//! which no clock and no other work on the machine change.

use kinora_contract::lifecycle::upload_key;
use kinora_contract::{FileId, FileKind};
use rusqlite::{Connection, StatementStatus};

use super::options::SqliteOptions;
use super::{schema, script};
use crate::sql::{SqlDialect, SqlQuery};
use crate::tables::uploads;
use crate::{FileBounds, FilePageRequest, IdempotencyKey, ListOrder, NewFile, UploadedFile};

const NOW: u64 = 1_800_000_000_000;
const LATER: u64 = NOW + 3_600_000;
const OWN: u64 = 30;

/// A file of the project `own` whose bytes no other file has.
fn file(number: u64) -> (NewFile, UploadedFile) {
    let id = FileId::from_parts(NOW + number, [7; 10]);
    let file = UploadedFile {
        id,
        project: "own".to_owned(),
        filename: "a.png".to_owned(),
        purpose: "user_data".to_owned(),
        kind: FileKind::Image,
        media_type: "image/png".to_owned(),
        bytes: 1_000,
        sha256: format!("own {number}"),
        blob_key: upload_key(id),
        created_at_ms: NOW,
        expires_at_ms: LATER,
    };
    let new = NewFile {
        id,
        project: file.project.clone(),
        filename: file.filename.clone(),
        purpose: file.purpose.clone(),
        kind: file.kind,
        media_type: file.media_type.clone(),
        bytes: file.bytes,
        sha256: file.sha256.clone(),
        lifetime_ms: LATER - NOW,
        idempotency: Some(IdempotencyKey {
            key: format!("key {number}"),
            fingerprint: [1; 32],
            bound_ms: 1_000,
        }),
        bounds: FileBounds {
            files_max: u64::MAX,
            project_bytes_max: 0,
            bytes_max: 0,
        },
    };
    (new, file)
}

/// All statements of an upload, a list, a look and a delete of the project `own`, for its file with this number.
fn statements(number: u64) -> Vec<SqlQuery> {
    let (new, file) = file(number);
    let page = |order, purpose: Option<&str>| {
        let request = FilePageRequest {
            project: "own".to_owned(),
            after: None,
            limit: 20,
            order,
            purpose: purpose.map(str::to_owned),
        };
        uploads::page(&request, NOW).query
    };
    let sqlite = SqlDialect::Sqlite;
    vec![
        uploads::find_by_key("own", "another key"),
        uploads::count("own"),
        uploads::twin("own", &file.sha256, NOW),
        uploads::add(&new, &file, LATER),
        uploads::find("own", file.id),
        uploads::confirm(file.id, &file.blob_key),
        page(ListOrder::Descending, None),
        page(ListOrder::Ascending, Some("user_data")),
        uploads::visible(Some("own"), file.id, NOW).query,
        uploads::visible_ids(sqlite, "own", &[file.id], NOW),
        uploads::due(NOW, 100).query,
        uploads::remove_unused(file.id),
        uploads::used_keys(sqlite, &[file.blob_key]).query,
    ]
}

/// The statements of [`statements`] with their steps.
fn steps(conn: &Connection, number: u64) -> Vec<(String, i32)> {
    let statements = statements(number).into_iter();
    let steps = statements.map(|query| {
        let prepared = || conn.prepare_cached(&query.text).unwrap();
        prepared().reset_status(StatementStatus::VmStep);
        script::run(conn, &query).unwrap();
        let steps = prepared().get_status(StatementStatus::VmStep);
        assert!(steps > 0, "{}", query.text);
        (query.text.into_owned(), steps)
    });
    steps.collect()
}

#[test]
fn p15_a_project_s_files_are_the_same_work_beside_a_hundred_thousand_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let conn = schema::open_writer(&path, &SqliteOptions::default()).unwrap();
    for number in 0..OWN {
        let (new, file) = file(number);
        for query in [
            uploads::add(&new, &file, LATER),
            uploads::confirm(file.id, &file.blob_key),
        ] {
            script::run(&conn, &query).unwrap();
        }
    }
    let alone = steps(&conn, OWN);
    // A hundred projects with as many files as each may have, all of the same bytes as ours.
    let (_, own) = file(OWN);
    let others = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999) \
        INSERT INTO uploads (id, project, filename, purpose, kind, media_type, bytes, sha256, blob_key, \
          created_at_ms, expires_at_ms, is_stored, due_ms) \
        SELECT 'file_' || printf('%026d', i), 'other ' || (i / 1000), 'a.png', 'user_data', 'image', 'image/png', \
          1000, ?1, 'uploads/' || i, ?2, ?3, 1, ?3 FROM n";
    let added = conn.execute(others, (own.sha256, NOW.cast_signed(), LATER.cast_signed()));
    assert_eq!(added.unwrap(), 100_000);
    assert_eq!(steps(&conn, OWN), alone);
}
