//! Turns an accepted task into a file: follows the task with a bar, handles Ctrl-C, and saves the result.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kinora_client::{Cost, Error, Status, Variant, Video, VideoWatch};
use kinora_contract::Amount;

use super::bar::TaskBar;
use super::service::ServiceClient;
use crate::cli::OutputArgs;
use crate::failure::{ExitKind, Failure};
use crate::output::{print, print_message, printable};
use crate::stop::StopSignals;

const TICK: Duration = Duration::from_millis(500);

/// The effect of Ctrl-C on the followed task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InterruptEffect {
    /// Cancels the task at the server: it was submitted by this command.
    Cancels,
    /// Leaves the task running.
    Leaves,
}

/// Refuses a place for the video where no file can be made, before a task is submitted that nobody
/// could save. Makes a file like the download's partial one, and removes it.
pub(super) fn check_target(output: Option<&Path>) -> Result<(), Failure> {
    let target = output.unwrap_or(Path::new("video.mp4"));
    let wrong = |why: &dyn std::fmt::Display| {
        let what = format!(
            "{} cannot be written",
            printable(&target.display().to_string())
        );
        Failure::because(what, why).exit(ExitKind::Usage)
    };
    let Some(name) = target.file_name().filter(|_| !target.is_dir()) else {
        return Err(wrong(&"it is a folder; name a file in it"));
    };
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.part", std::process::id()));
    let probe = target.with_file_name(hidden);
    let made = OpenOptions::new().write(true).create_new(true).open(&probe);
    made.map_err(|error| wrong(&error))?;
    // An empty file that remains would be harmless.
    let _ = fs::remove_file(probe);
    Ok(())
}

/// Follows `task`, which this command submitted, and saves its video.
pub(super) async fn deliver(
    service: &ServiceClient,
    task: Video,
    output: &OutputArgs,
    signals: &mut StopSignals,
) -> Result<(), Failure> {
    if output.no_wait {
        print(&if output.json {
            json(&task, None)?
        } else {
            format!("{}\n", task.id)
        });
        return Ok(());
    }
    let mut bar = TaskBar::new();
    if bar.is_shown() {
        let what = format!("{}  {}  {}", task.id, task.model, task.size);
        print_message(&printable(&what));
    }
    let watched = FollowedTask {
        id: &task.id,
        interrupt: InterruptEffect::Cancels,
    };
    let done = watched
        .follow(service, &mut bar, signals, |_| Ok(()))
        .await?;
    save(
        service,
        &done,
        output.output.clone(),
        output.json,
        &mut bar,
        signals,
    )
    .await
}

/// Saves the video of a finished task and prints its path; returns an error for a failed task.
pub(super) async fn save(
    service: &ServiceClient,
    done: &Video,
    output: Option<PathBuf>,
    as_json: bool,
    bar: &mut TaskBar,
    signals: &mut StopSignals,
) -> Result<(), Failure> {
    for warning in &done.warnings {
        bar.clear();
        print_message(&format!("warning: {}", printable(&warning.message)));
    }
    if let Some(cost) = done.cost.as_ref().filter(|_| !as_json) {
        bar.clear();
        print_message(&cost_line(cost));
    }
    if done.status != Status::Completed {
        if as_json {
            print(&json(done, None)?);
        }
        return Err(Failure::new(failure(done)));
    }
    let path = output.unwrap_or_else(|| format!("{}.mp4", done.id).into());
    bar.show_activity(&format!("saving {} ...", path.display()));
    let saving = service.client.download(&done.id, Variant::Video, &path);
    tokio::select! {
        saved = saving => saved.map_err(|error| download_failure(service, &done.id, &error))?,
        () = signals.next() => return Err(interrupted_failure(&done.id, "is completed")),
    };
    bar.clear();
    print(&if as_json {
        json(done, Some(&path))?
    } else {
        format!("{}\n", path.display())
    });
    Ok(())
}

/// A followed task.
#[derive(Debug)]
pub(super) struct FollowedTask<'a> {
    pub(super) id: &'a str,
    pub(super) interrupt: InterruptEffect,
}

impl FollowedTask<'_> {
    /// Shows the task's progress until it ends; calls `each` with every change.
    pub(super) async fn follow(
        &self,
        service: &ServiceClient,
        bar: &mut TaskBar,
        signals: &mut StopSignals,
        mut each: impl FnMut(&Video) -> Result<(), Failure>,
    ) -> Result<Video, Failure> {
        let mut watch = service.client.watch(self.id);
        loop {
            let update = tokio::select! {
                biased;
                () = signals.next() => return self.interrupted(service, bar, signals).await,
                update = next_update(&mut watch, bar) => update,
            };
            let update = update.map_err(|error| self.connection_failure(service, &error))?;
            let Some(video) = update else {
                return Err(Failure::new(format!("{} has no end.", self.id)));
            };
            bar.update(&video);
            each(&video)?;
            if video.is_finished() {
                return Ok(video);
            }
        }
    }

    /// The connection was lost; the task itself may continue.
    fn connection_failure(&self, service: &ServiceClient, error: &Error) -> Failure {
        let why = service.failure(error);
        if error.is_transient() {
            why.with_suffix(&format!(
                "\n  The task may go on:  kinora tasks watch {}",
                printable(self.id)
            ))
        } else {
            why
        }
    }

    /// Handles the first Ctrl-C; a second one exits immediately.
    async fn interrupted(
        &self,
        service: &ServiceClient,
        bar: &TaskBar,
        signals: &mut StopSignals,
    ) -> Result<Video, Failure> {
        bar.clear();
        if self.interrupt == InterruptEffect::Leaves {
            return Err(interrupted_failure(self.id, "goes on"));
        }
        cancel(service, self.id, signals).await
    }
}

/// Cancels a task because of Ctrl-C, and reports that. Returns the task if it was already finished.
pub(super) async fn cancel(
    service: &ServiceClient,
    id: &str,
    signals: &mut StopSignals,
) -> Result<Video, Failure> {
    print_message("cancelling the task; press Ctrl-C again to exit immediately");
    let cancelled = tokio::select! {
        cancelled = service.client.cancel(id) => cancelled,
        () = signals.next() => return Err(interrupted_failure(id, "may go on")),
    };
    match cancelled {
        Ok(_) => Err(Failure::new(format!("{id} is cancelled.")).exit(ExitKind::Interrupted)),
        Err(error) if error.code() == Some("not_cancellable") => {
            let video = service.client.get(id).await;
            video.map_err(|error| service.failure(&error))
        }
        Err(error) => Err(service.failure(&error)),
    }
}

/// Waits for the next update, while the bar moves.
async fn next_update(watch: &mut VideoWatch, bar: &TaskBar) -> Result<Option<Video>, Error> {
    let update = watch.next();
    tokio::pin!(update);
    loop {
        tokio::select! {
            update = &mut update => return update,
            () = tokio::time::sleep(TICK) => bar.tick(),
        }
    }
}

/// The video is made and kept at the server, and only its download failed.
fn download_failure(service: &ServiceClient, id: &str, error: &Error) -> Failure {
    let failure = service.failure(error);
    let failure = match error {
        Error::File { .. } => failure.exit(ExitKind::Unsaved),
        _ => failure,
    };
    failure.with_suffix(&format!(
        "\n  The video is made; save it by:  kinora tasks download {}",
        printable(id)
    ))
}

/// The message after Ctrl-C.
fn interrupted_failure(id: &str, state: &str) -> Failure {
    let id = printable(id);
    let text = format!("The task {state} at the server:  kinora tasks watch {id}");
    Failure::new(text).exit(ExitKind::Interrupted)
}

/// What a finished task has cost.
fn cost_line(cost: &Cost) -> String {
    // The service may send an amount that this program would not accept as one.
    let amount = Amount::from_units(cost.amount);
    let amount = amount.map_or_else(|| cost.amount.to_string(), |amount| amount.to_string());
    printable(&format!("cost: {amount} {}", cost.currency))
}

/// The reason for a task's failure, in one line.
pub(super) fn failure(task: &Video) -> String {
    let why = task.error.as_ref().map_or_else(String::new, |error| {
        format!(": {} ({})", error.message, error.code)
    });
    printable(&format!("{} {}{why}", task.id, task.status.name()))
}

/// The task object, with the path of the saved file, if any.
fn json(video: &Video, path: Option<&PathBuf>) -> Result<String, Failure> {
    let mut value = serde_json::to_value(video)
        .map_err(|error| Failure::because("The task cannot be shown", error))?;
    if let (Some(path), Some(object)) = (path, value.as_object_mut()) {
        object.insert("file".to_owned(), path.display().to_string().into());
    }
    Ok(format!("{value:#}\n"))
}
