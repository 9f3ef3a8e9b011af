//! Whether there is a backup, and its age.

use std::path::Path;

use super::finding::Finding;
use crate::backup::last::{Made, Record};
use crate::date::date;

/// An older backup gets a note.
const OLD_SECONDS: u64 = 7 * 24 * 60 * 60;

/// The last backup of the data folder.
pub(super) fn last(data: &Path, now_ms: u64) -> Finding {
    let record = Record::read(data).unwrap_or_default();
    let begun = record.begun.as_ref().map_or_else(String::new, |made| {
        format!("; one started at {} has not ended", shown(made))
    });
    let Some(whole) = record.whole else {
        return Finding::Note(format!(
            "no backup yet{begun}; run `kinora backup` regularly"
        ));
    };
    let text = format!("the last complete one is from {}{begun}", shown(&whole));
    if (now_ms / 1000).saturating_sub(whole.at) > OLD_SECONDS {
        return Finding::Note(format!("{text}; it is older than a week"));
    }
    if begun.is_empty() {
        Finding::Good(text)
    } else {
        Finding::Note(text)
    }
}

fn shown(made: &Made) -> String {
    format!("{} UTC, in {}", date(made.at * 1000), made.to.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_missing_or_unfinished_backup_is_noted() {
        const NOW: u64 = 1_800_000_000;
        let found = |whole: Option<u64>, begun: Option<u64>| {
            let data = tempfile::tempdir().unwrap();
            let made = |at: u64| Made {
                at,
                to: "/backups/a".into(),
            };
            let record = Record {
                whole: whole.map(made),
                begun: begun.map(made),
            };
            let text = serde_json::to_string(&record).unwrap();
            std::fs::write(data.path().join(crate::backup::last::FILE), text).unwrap();
            last(data.path(), NOW * 1000)
        };
        let is_note = |finding: &Finding, part: &str| match finding {
            Finding::Note(text) => assert!(text.contains(part), "{text}"),
            other => panic!("{other:?}"),
        };
        assert!(matches!(
            found(Some(NOW - OLD_SECONDS), None),
            Finding::Good(_)
        ));
        is_note(
            &found(Some(NOW - OLD_SECONDS - 1), None),
            "older than a week",
        );
        is_note(&found(Some(NOW), Some(NOW)), "has not ended");
        is_note(&found(None, Some(NOW)), "no backup yet");
        let empty = tempfile::tempdir().unwrap();
        is_note(&last(empty.path(), NOW * 1000), "no backup yet");
    }
}
