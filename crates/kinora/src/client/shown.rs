//! Tasks for people: one line each, or every field of one task.

use kinora_client::{Status, Video};

use crate::date::date;
use crate::table::{aligned, printable};

const HEADS: [&str; 7] = [
    "ID", "STATUS", "MODEL", "SIZE", "SECONDS", "CREATED", "PROMPT",
];
const PROMPT_CHARS: usize = 40;

/// One line per task.
pub(super) fn table(tasks: &[Video]) -> String {
    if tasks.is_empty() {
        return "No tasks. Make one:  kinora generate \"A red balloon drifts over the sea\"\n"
            .to_owned();
    }
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(tasks.iter().map(row));
    aligned(&rows)
}

fn row(task: &Video) -> [String; HEADS.len()] {
    [
        printable(&task.id),
        status(task),
        printable(&task.model),
        printable(&task.size),
        printable(&task.seconds),
        date(task.created_at * 1000),
        shortened(&task.prompt),
    ]
}

fn status(task: &Video) -> String {
    match task.status {
        Status::InProgress => format!("in_progress {} %", task.progress),
        Status::Failed if task.is_cancelled() => "failed (cancelled)".to_owned(),
        other => other.name().to_owned(),
    }
}

fn shortened(prompt: &str) -> String {
    let words: Vec<&str> = prompt.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(PROMPT_CHARS) {
        None => printable(&line),
        Some((end, _)) => format!("{}...", printable(line.get(..end).unwrap_or_default())),
    }
}

/// Every known field of a task, one per line.
pub(super) fn details(task: &Video) -> String {
    let time = |seconds: Option<u64>| seconds.map(|seconds| date(seconds * 1000) + " UTC");
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let rows = [
        ("id", Some(task.id.clone())),
        ("status", Some(status(task))),
        ("failure", task.error.as_ref().map(|_| failure(task))),
        ("model", Some(task.model.clone())),
        ("prompt", Some(task.prompt.clone())),
        ("size", Some(task.size.clone())),
        ("seconds", Some(task.seconds.clone())),
        ("seed", Some(task.seed.to_string())),
        ("draft", task.draft.then(|| "yes".to_owned())),
        ("final of", task.draft_task_id.clone()),
        ("edit of", task.edit_task_id.clone()),
        ("priority", task.priority.clone()),
        ("tasks before it", number(task.queue_position)),
        ("created", time(Some(task.created_at))),
        ("started", time(task.started_at)),
        ("finished", time(task.completed_at)),
        ("kept until", time(task.expires_at)),
        ("engine", task.engine.clone()),
        (
            "sound",
            task.has_audio
                .map(|has| if has { "yes" } else { "no" }.to_owned()),
        ),
        ("video", task.result_url.clone()),
    ];
    let mut rows: Vec<[String; 2]> = rows
        .into_iter()
        .filter_map(|(name, value)| Some([name.to_owned(), printable(&value?)]))
        .collect();
    let pairs = task.metadata.iter();
    rows.extend(
        pairs.map(|(key, value)| [format!("metadata {}", printable(key)), printable(value)]),
    );
    let warnings = task.warnings.iter();
    rows.extend(warnings.map(|one| ["warning".to_owned(), printable(&one.message)]));
    aligned(&rows)
}

/// The reason for a task's failure, in one line.
pub(super) fn failure(task: &Video) -> String {
    let why = task.error.as_ref().map_or_else(String::new, |error| {
        format!(": {} ({})", error.message, error.code)
    });
    printable(&format!("{} {}{why}", task.id, task.status.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Video {
        serde_json::from_value(serde_json::json!({
            "id": "video_x", "status": "failed", "model": "kinora-a1", "size": "1280x720", "seconds": "5",
            "created_at": 1_700_000_000, "prompt": "A\u{1b}[2J very long prompt that goes on and on, far beyond",
            "error": {"code": "cancelled", "message": "Cancelled."},
        }))
        .unwrap()
    }

    #[test]
    fn a_task_is_a_line_that_cannot_write_to_the_terminal() {
        let text = table(&[task()]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        for cell in [
            "video_x",
            "failed (cancelled)",
            "2023-11-14 22:13",
            "A\\u{1b}[2J very",
            "...",
        ] {
            assert!(lines[1].contains(cell), "{cell}: {text}");
        }
        assert!(!text.contains('\u{1b}'));
        assert!(table(&[]).contains("kinora generate"));
    }

    #[test]
    fn details_leave_out_what_is_not_known() {
        let text = details(&task());
        assert!(text.contains("Cancelled. (cancelled)"), "{text}");
        assert!(
            !text.contains("engine") && !text.contains("tasks before it"),
            "{text}"
        );
    }
}
