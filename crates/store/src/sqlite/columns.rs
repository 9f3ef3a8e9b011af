//! Columns of the table `tasks`.

pub(super) use crate::stored::{int, phase_name};

/// The columns of a record ([`super::rows::read`]).
pub(super) const COLUMNS: &str = "seq, id, project, phase, progress, attempt, engine, \
     created_at_ms, started_at_ms, finished_at_ms, expires_at_ms, lease_token, lease_until_ms, \
     worker, artifact, failure, spec_version, spec, metadata, kept, references_ready, warnings, \
     reference_bytes, charged_bytes, deaths, priority, texts_sum, state_sum, trace";

/// The index of a column in [`COLUMNS`], computed at compile time: looking up names in each row
/// would double the time of reading a page.
pub(super) const fn at(name: &str) -> usize {
    let (all, name) = (COLUMNS.as_bytes(), name.as_bytes());
    let (mut place, mut start) = (0, 0);
    loop {
        assert!(start < all.len(), "no such column");
        let mut end = start;
        let mut same = true;
        while end < all.len() && all[end] != b',' {
            same &= end - start < name.len() && all[end] == name[end - start];
            end += 1;
        }
        if same && end - start == name.len() {
            return place;
        }
        (place, start) = (place + 1, end + 2);
    }
}
