//! Keys, and the log of their changes, for people and programs: an aligned table, or JSON. Neither
//! has a key's text, which is not stored.

use kinora_contract::Amount;
use kinora_store::{ApiKey, KeyAction};
use serde_json::{Value, json};

use crate::cli::LogArgs;
use crate::failure::Failure;
use crate::output::{self, date, print, printable, unix_seconds};
use crate::store_access;

const HEADS: [&str; 13] = [
    "ID",
    "NAME",
    "PROJECT",
    "STATE",
    "CREATED",
    "EXPIRES",
    "LAST USED",
    "SCOPES",
    "MODELS",
    "PER MINUTE",
    "UNFINISHED",
    "PER DAY",
    "PER MONTH",
];

/// One line per key, newest first. Times are in UTC.
pub(super) fn table(keys: &[ApiKey], now_ms: u64) -> String {
    output::table(HEADS, keys.iter().map(|key| row(key, now_ms)))
}

/// A JSON array with one object per key, newest first. Times are in Unix seconds; `null` for a
/// missing one, and for a limit that the configuration sets.
pub(super) fn json(keys: &[ApiKey], now_ms: u64) -> String {
    let all: Value = keys
        .iter()
        .map(|one| {
            json!({
                "id": one.key.id,
                "name": one.key.name,
                "project": one.key.project,
                "state": state(one, now_ms),
                "created_at": one.key.created_at_ms / 1000,
                "expires_at": unix_seconds(one.key.expires_at_ms),
                "revoked_at": unix_seconds(one.revoked_at_ms),
                "last_used_at": unix_seconds(one.last_used_at_ms),
                "scopes": scopes(one),
                "models": one.key.models,
                "requests_per_minute": one.key.requests_per_minute,
                "unfinished_max": one.key.unfinished_max,
                "budget_per_day": one.key.budget.per_day,
                "budget_per_month": one.key.budget.per_month,
            })
        })
        .collect();
    format!("{all:#}\n")
}

fn row(key: &ApiKey, now_ms: u64) -> [String; HEADS.len()] {
    let (state, scopes) = (state(key, now_ms), scopes(key));
    let used = key.last_used_at_ms;
    let key = &key.key;
    let models = key.models.as_ref();
    let per_minute = match key.requests_per_minute {
        Some(0) => "no limit".to_owned(),
        limit => as_configured(limit),
    };
    [
        key.id.clone(),
        printable(&key.name),
        printable(&key.project),
        state.to_owned(),
        date(key.created_at_ms),
        key.expires_at_ms.map_or_else(|| "never".to_owned(), date),
        used.map_or_else(|| "never".to_owned(), date),
        scopes.join(","),
        models.map_or_else(|| "all".to_owned(), |all| printable(&all.join(","))),
        per_minute,
        as_configured(key.unfinished_max),
        as_budget(key.budget.per_day),
        as_budget(key.budget.per_month),
    ]
}

fn as_configured(limit: Option<u32>) -> String {
    limit.map_or_else(|| "as configured".to_owned(), |limit| limit.to_string())
}

fn as_budget(amount: Option<Amount>) -> String {
    amount.map_or_else(|| "no bound".to_owned(), |amount| amount.to_string())
}

fn state(key: &ApiKey, now_ms: u64) -> &'static str {
    match key.revoked_at_ms {
        Some(_) => "revoked",
        None if key.is_usable(now_ms) => "usable",
        None => "expired",
    }
}

fn scopes(key: &ApiKey) -> Vec<&'static str> {
    key.key.scopes.iter().map(|scope| scope.name()).collect()
}

/// Shows the log.
pub(super) async fn show_log(args: &LogArgs) -> Result<(), Failure> {
    let operations = store_access::open_operations(&args.home, "keys log").await?;
    let log = operations.key_log(args.project.as_deref()).await?;
    print(&if args.json {
        log_json(&log)
    } else {
        log_table(&log)
    });
    Ok(())
}

/// One line per action, newest first.
fn log_table(log: &[KeyAction]) -> String {
    let heads = ["TIME", "ACTION", "KEY", "NAME", "PROJECT", "NEW KEY", "BY"];
    let rows = log.iter().map(|entry| {
        [
            date(entry.at_ms),
            entry.kind.name().to_owned(),
            entry.key.clone(),
            printable(&entry.name),
            printable(&entry.project),
            entry.successor.clone().unwrap_or_default(),
            printable(&format!("{}@{}", entry.by.user, entry.by.host)),
        ]
    });
    output::table(heads, rows)
}

/// A JSON array with one object per action, newest first.
fn log_json(log: &[KeyAction]) -> String {
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
    use super::*;
    use crate::keys::NewKeyParts;
    use kinora_store::NewKey;

    const NOW: u64 = 1_795_319_100_000;

    fn key(name: &str) -> ApiKey {
        let (_, made) = NewKeyParts::for_first_start().generate(NOW).unwrap();
        ApiKey {
            key: NewKey {
                id: "key_abc".to_owned(),
                name: name.to_owned(),
                ..made
            },
            revoked_at_ms: None,
            last_used_at_ms: None,
        }
    }

    #[test]
    fn the_table_shows_all_that_a_key_is_in_aligned_columns() {
        let mut limited = key("a much longer name");
        limited.key.expires_at_ms = Some(NOW + 60_000);
        limited.key.models = Some(vec!["kinora-b1".to_owned()]);
        limited.key.requests_per_minute = Some(0);
        limited.key.unfinished_max = Some(7);
        limited.last_used_at_ms = Some(NOW - 60_000);
        let text = table(&[key("web"), limited], NOW);
        let lines: Vec<&str> = text.lines().collect();
        let both = "videos:write,videos:read";
        for (line, head, cell) in [
            (1, "NAME", "web "),
            (1, "CREATED", "2026-11-22 03:45"),
            (1, "EXPIRES", "never"),
            (1, "LAST USED", "never"),
            (1, "MODELS", "all"),
            (1, "PER MINUTE", "as configured"),
            (1, "UNFINISHED", "as configured"),
            (2, "NAME", "a much longer name"),
            (2, "STATE", "usable"),
            (2, "EXPIRES", "2026-11-22 03:46"),
            (2, "LAST USED", "2026-11-22 03:44"),
            (2, "SCOPES", both),
            (2, "MODELS", "kinora-b1"),
            (2, "PER MINUTE", "no limit"),
            (2, "UNFINISHED", "7"),
        ] {
            let at = lines[0].find(head).unwrap();
            assert!(lines[line][at..].starts_with(cell), "{head}: {text}");
        }
    }

    #[test]
    fn a_name_cannot_write_to_the_terminal() {
        let text = table(&[key("\u{1b}[2J\nkey_x \u{202e}evil\\")], NOW);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains(r"\u{1b}[2J\nkey_x \u{202e}evil\\"), "{text}");
        assert!(text.contains("NAME"), "{text}");
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{202e}'),
            "{text:?}"
        );
    }

    #[test]
    fn json_has_all_of_it_for_programs() {
        let mut one = key("we\u{1b}b");
        one.revoked_at_ms = Some(NOW + 1000);
        assert_eq!(state(&one, NOW), "revoked");
        let mut short = key("short");
        short.key.expires_at_ms = Some(NOW + 5);
        assert_eq!(
            [NOW, NOW + 5].map(|now| state(&short, now)),
            ["usable", "expired"]
        );
        let text = json(&[one], NOW + 2000);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            value,
            json!([{
                "id": "key_abc",
                "name": "we\u{1b}b",
                "project": "default",
                "state": "revoked",
                "created_at": NOW / 1000,
                "expires_at": null,
                "revoked_at": NOW / 1000 + 1,
                "last_used_at": null,
                "scopes": ["videos:write", "videos:read"],
                "models": null,
                "requests_per_minute": null,
                "unfinished_max": null,
                "budget_per_day": null,
                "budget_per_month": null,
            }])
        );
    }
}

#[cfg(test)]
mod log_tests {
    use kinora_store::{KeyActionKind, KeyActor};

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
            by: KeyActor {
                user: "alice".to_owned(),
                host: "gpu-1".to_owned(),
            },
        };
        let text = log_table(std::slice::from_ref(&entry));
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
        let value: Value = serde_json::from_str(&log_json(&[entry])).unwrap();
        assert_eq!(
            (&value[0]["at"], &value[0]["new_key"]),
            (&1_795_319_100.into(), &"key_b".into())
        );
    }
}
