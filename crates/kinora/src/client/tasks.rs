//! `kinora tasks`: the tasks of the key's project, one by one or as a list; for people, or as JSON.
//! Ctrl-C leaves these tasks running: this command did not submit them.

use std::path::Path;

use kinora_client::{Error, Status, Video};
use rustix::termios::tcgetwinsize;
use serde_json::json;

use super::bar::TaskBar;
use super::deliver::{FollowedTask, InterruptEffect, check_target, failure, save};
use super::service::ServiceClient;
use crate::cli::{CancelArgs, IdsArgs, TasksCommand};
use crate::failure::Failure;
use crate::output::{GAP, aligned, date, print, printable, shortened, widths};
use crate::stop::StopSignals;

/// Runs one of the commands.
pub(crate) async fn run(command: &TasksCommand) -> Result<(), Failure> {
    let service = ServiceClient::from_environment()?;
    match command {
        TasksCommand::List { limit, json } => list(&service, *limit, *json).await,
        TasksCommand::Show { id, json } => show(&service, id, *json).await,
        TasksCommand::Watch { id, json } => watch(&service, id, *json).await,
        TasksCommand::Download { id, output, json } => {
            download(&service, id, output.as_deref(), *json).await
        }
        TasksCommand::Cancel(args) => cancel(&service, args).await,
        TasksCommand::Delete(args) => delete(&service, args).await,
    }
}

async fn list(service: &ServiceClient, limit: u32, as_json: bool) -> Result<(), Failure> {
    let mut pages = service.client.list().page_size(limit);
    let tasks = collect(service, limit, async || pages.next().await).await?;
    print(&if as_json {
        pretty(&tasks)?
    } else {
        table(&tasks, terminal_columns())
    });
    Ok(())
}

/// Up to `limit` items of a list.
pub(super) async fn collect<T>(
    service: &ServiceClient,
    limit: u32,
    mut next: impl AsyncFnMut() -> Result<Option<T>, Error>,
) -> Result<Vec<T>, Failure> {
    let mut items = Vec::new();
    while items.len() < limit as usize
        && let Some(item) = next().await.map_err(|error| service.failure(&error))?
    {
        items.push(item);
    }
    Ok(items)
}

/// The width of the terminal that standard output is, if it is one.
fn terminal_columns() -> Option<usize> {
    let size = tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

async fn show(service: &ServiceClient, id: &str, as_json: bool) -> Result<(), Failure> {
    let task = service.client.get(id).await;
    let task = task.map_err(|error| service.failure(&error))?;
    print(&if as_json {
        pretty(&task)?
    } else {
        details(&task)
    });
    Ok(())
}

async fn watch(service: &ServiceClient, id: &str, as_json: bool) -> Result<(), Failure> {
    let mut bar = TaskBar::new();
    let done = followed_task(id)
        .follow(
            service,
            &mut bar,
            &mut StopSignals::from_process()?,
            |video| {
                if as_json {
                    line(video).map(|line| print(&line))
                } else {
                    Ok(())
                }
            },
        )
        .await?;
    bar.clear();
    if !as_json {
        print(&format!("{}\n", done.status.name()));
    }
    match done.status {
        Status::Completed => Ok(()),
        _ => Err(Failure::new(failure(&done))),
    }
}

async fn download(
    service: &ServiceClient,
    id: &str,
    output: Option<&Path>,
    as_json: bool,
) -> Result<(), Failure> {
    check_target(output)?;
    let (mut bar, mut signals) = (TaskBar::new(), StopSignals::from_process()?);
    let done = followed_task(id)
        .follow(service, &mut bar, &mut signals, |_| Ok(()))
        .await?;
    let output = output.map(Path::to_owned);
    save(service, &done, output, as_json, &mut bar, &mut signals).await
}

const fn followed_task(id: &str) -> FollowedTask<'_> {
    FollowedTask {
        id,
        interrupt: InterruptEffect::Leaves,
    }
}

async fn cancel(service: &ServiceClient, args: &CancelArgs) -> Result<(), Failure> {
    if args.waiting {
        return cancel_waiting(service, args).await;
    }
    for id in &args.ids {
        let task = service.client.cancel(id).await;
        let task = task.map_err(|error| with_task(id, service, &error))?;
        print(&if args.json {
            line(&task)?
        } else {
            format!("{}\n", task.id)
        });
    }
    Ok(())
}

async fn cancel_waiting(service: &ServiceClient, args: &CancelArgs) -> Result<(), Failure> {
    let cancelled = service.client.cancel_queued(args.model.as_deref()).await;
    let cancelled = cancelled.map_err(|error| service.failure(&error))?;
    print(&if args.json {
        line(&json!({"cancelled": cancelled}))?
    } else {
        let tasks = if cancelled == 1 { "task" } else { "tasks" };
        format!("{cancelled} {tasks} cancelled\n")
    });
    Ok(())
}

async fn delete(service: &ServiceClient, args: &IdsArgs) -> Result<(), Failure> {
    for id in &args.ids {
        let deleted = service.client.delete(id).await;
        deleted.map_err(|error| with_task(id, service, &error))?;
        print(&if args.json {
            line(&json!({"id": id, "deleted": true}))?
        } else {
            format!("{id}\n")
        });
    }
    Ok(())
}

/// Prefixes an error with its task, for commands on several tasks.
fn with_task(id: &str, service: &ServiceClient, error: &Error) -> Failure {
    service
        .failure(error)
        .with_prefix(&format!("{}: ", id.escape_debug()))
}

pub(super) fn line(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value);
    text.map(|text| text + "\n").map_err(serialization_failure)
}

pub(super) fn pretty(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(serialization_failure)
}

fn serialization_failure(error: serde_json::Error) -> Failure {
    Failure::because("The task cannot be shown", error)
}

const HEADS: [&str; 7] = [
    "ID", "STATUS", "MODEL", "SIZE", "SECONDS", "CREATED", "PROMPT",
];
/// Columns that a narrow terminal does without, the first one first.
const SPARED: [&str; 3] = ["SECONDS", "SIZE", "CREATED"];
/// Minimum width of a readable prompt.
const PROMPT_COLUMNS_MIN: usize = 16;

/// One line per task, in at most `width` columns of a terminal; with the whole prompts if it is
/// not for a terminal.
fn table(tasks: &[Video], width: Option<usize>) -> String {
    if tasks.is_empty() {
        return "No tasks. Make one:  kinora generate \"A red balloon drifts over the sea\"\n"
            .to_owned();
    }
    let mut rows = vec![HEADS.map(str::to_owned).to_vec()];
    rows.extend(tasks.iter().map(row));
    if let Some(width) = width {
        fit_to_width(&mut rows, width);
    }
    aligned(&rows)
}

/// Leaves out columns until the prompts have room, and cuts the prompts.
fn fit_to_width(rows: &mut [Vec<String>], width: usize) {
    // The id and the state stay in any case, and the prompt is what people recognise a task by.
    // What is dropped can be had by `kinora tasks show`.
    for spared in SPARED {
        if prompt_columns(rows, width) >= PROMPT_COLUMNS_MIN {
            break;
        }
        let at = rows
            .first()
            .and_then(|heads| heads.iter().position(|head| head == spared));
        if let Some(at) = at {
            for row in &mut *rows {
                row.remove(at);
            }
        }
    }
    let room = prompt_columns(rows, width).max(PROMPT_COLUMNS_MIN);
    for prompt in rows.iter_mut().filter_map(|row| row.last_mut()) {
        *prompt = shortened(prompt, room);
    }
}

/// The columns that the others leave for the prompt, the last one.
fn prompt_columns(rows: &[Vec<String>], width: usize) -> usize {
    let widths = widths(rows);
    let others = widths.split_last().map_or(&[][..], |(_, others)| others);
    let taken: usize = others.iter().map(|column| column + GAP.len()).sum();
    width.saturating_sub(taken)
}

fn row(task: &Video) -> Vec<String> {
    let words: Vec<&str> = task.prompt.split_whitespace().collect();
    vec![
        printable(&task.id),
        status(task),
        printable(&task.model),
        printable(&task.size),
        printable(&task.seconds),
        date(task.created_at * 1000),
        printable(&words.join(" ")),
    ]
}

fn status(task: &Video) -> String {
    match task.status {
        Status::InProgress => format!("in_progress {} %", task.progress),
        Status::Failed if task.is_cancelled() => "failed (cancelled)".to_owned(),
        other => other.name().to_owned(),
    }
}

/// Every known field of a task, one per line.
fn details(task: &Video) -> String {
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
        (
            "tasks before it",
            task.queue_position.map(|position| position.to_string()),
        ),
        ("created", utc(Some(task.created_at))),
        ("started", utc(task.started_at)),
        ("finished", utc(task.completed_at)),
        ("kept until", utc(task.expires_at)),
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

fn utc(seconds: Option<u64>) -> Option<String> {
    seconds.map(|seconds| date(seconds * 1000) + " UTC")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::columns;

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
        let text = table(&[task()], None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        for cell in [
            "video_x",
            "failed (cancelled)",
            "2023-11-14 22:13",
            "A\\u{1b}[2J very long prompt that goes on and on, far beyond",
        ] {
            assert!(lines[1].contains(cell), "{cell}: {text}");
        }
        assert!(!text.contains('\u{1b}'));
        assert!(table(&[], None).contains("kinora generate"));
    }

    #[test]
    fn a_table_fits_the_terminal() {
        let mut wide = task();
        wide.prompt = "雨中飞驰的摩托车".repeat(9);
        for width in [70, 80, 100, 110, 200] {
            let text = table(&[task(), wide.clone()], Some(width));
            for line in text.lines() {
                assert!(columns(line) <= width, "{width}: {line}");
            }
            assert!(
                text.contains("PROMPT") && text.contains("video_x"),
                "{text}"
            );
            let shows = |head: &str| text.contains(head);
            assert!(shows("CREATED") || !shows("SECONDS"), "{text}");
            assert!(width < 100 || shows("SECONDS"), "{text}");
        }
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
