//! `kinora keys log`: who changed which keys.

use kinora_store::KeyAction;
use serde_json::{Value, json};

use crate::beside;
use crate::cli::LogArgs;
use crate::date::date;
use crate::failure::Failure;
use crate::output::print;
use crate::table::{aligned, printable};

const HEADS: [&str; 7] = ["TIME", "ACTION", "KEY", "NAME", "PROJECT", "NEW KEY", "BY"];

/// Shows the log.
pub(super) async fn show(args: &LogArgs) -> Result<(), Failure> {
    let operations = beside::open(&args.home, "keys log").await?;
    let log = operations.key_log(args.project.as_deref()).await;
    let log = log.map_err(beside::failed)?;
    print(&if args.json {
        as_json(&log)
    } else {
        as_table(&log)
    });
    Ok(())
}

/// One line per action, newest first.
fn as_table(log: &[KeyAction]) -> String {
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(log.iter().map(|entry| {
        [
            date(entry.at_ms),
            entry.kind.name().to_owned(),
            entry.key.clone(),
            printable(&entry.name),
            printable(&entry.project),
            entry.successor.clone().unwrap_or_default(),
            printable(&format!("{}@{}", entry.by.user, entry.by.host)),
        ]
    }));
    aligned(&rows)
}

/// A JSON array with one object per action, newest first.
fn as_json(log: &[KeyAction]) -> String {
    let all: Value = log
        .iter()
        .map(|entry| {
            json!({
                "at": entry.at_ms / 1000,
                "action": entry.kind.name(),
                "key": entry.key,
                "name": entry.name,
                "project": entry.project,
                "new_key": entry.successor,
                "user": entry.by.user,
                "host": entry.by.host,
            })
        })
        .collect();
    format!("{all:#}\n")
}

#[cfg(test)]
mod tests {
    use kinora_store::{Actor, KeyActionKind};

    use super::*;

    #[test]
    fn an_action_is_a_line_that_cannot_write_to_the_terminal() {
        let entry = KeyAction {
            at_ms: 1_795_319_100_000,
            kind: KeyActionKind::Rotated,
            key: "key_a".to_owned(),
            name: "web\u{1b}[2J".to_owned(),
            project: "shop".to_owned(),
            successor: Some("key_b".to_owned()),
            by: Actor {
                user: "alice".to_owned(),
                host: "gpu-1".to_owned(),
            },
        };
        let text = as_table(std::slice::from_ref(&entry));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        for (head, cell) in [
            ("TIME", "2026-11-22 03:45"),
            ("ACTION", "rotated"),
            ("NEW KEY", "key_b"),
            ("BY", "alice@gpu-1"),
        ] {
            let at = lines[0].find(head).unwrap();
            assert!(lines[1][at..].starts_with(cell), "{head}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let value: Value = serde_json::from_str(&as_json(&[entry])).unwrap();
        assert_eq!(
            (&value[0]["at"], &value[0]["new_key"]),
            (&1_795_319_100.into(), &"key_b".into())
        );
    }
}
