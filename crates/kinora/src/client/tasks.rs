//! `kinora tasks`: the tasks of the key's project, one by one or as a list.

use std::path::Path;

use kinora_client::{Error, Status};
use rustix::termios::tcgetwinsize;
use serde_json::json;

use super::bar::Bar;
use super::deliver::{Interrupt, Watched, check_target, save};
use super::service::Service;
use super::shown;
use crate::cli::{IdsArgs, PreviewMode, TasksCommand};
use crate::failure::Failure;
use crate::output::print;
use crate::stop::Signals;

/// Runs one of the commands.
pub(super) async fn run(command: &TasksCommand) -> Result<(), Failure> {
    let service = Service::of_environment()?;
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

async fn list(service: &Service, limit: u32, as_json: bool) -> Result<(), Failure> {
    let mut pages = service.client.list().page_size(limit);
    let mut tasks = Vec::new();
    while tasks.len() < limit as usize {
        match pages
            .next()
            .await
            .map_err(|error| service.failure(&error))?
        {
            Some(task) => tasks.push(task),
            None => break,
        }
    }
    print(&if as_json {
        pretty(&tasks)?
    } else {
        shown::table(&tasks, terminal_columns())
    });
    Ok(())
}

/// The width of the terminal that standard output is, if it is one.
fn terminal_columns() -> Option<usize> {
    let size = tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

async fn show(service: &Service, id: &str, as_json: bool) -> Result<(), Failure> {
    let task = service.client.get(id).await;
    let task = task.map_err(|error| service.failure(&error))?;
    print(&if as_json {
        pretty(&task)?
    } else {
        shown::details(&task)
    });
    Ok(())
}

async fn watch(service: &Service, id: &str, as_json: bool) -> Result<(), Failure> {
    let mut bar = Bar::new();
    let done = watched(id)
        .follow(service, &mut bar, &mut Signals::of_process()?, |video| {
            if as_json {
                line(video).map(|line| print(&line))
            } else {
                Ok(())
            }
        })
        .await?;
    bar.clear();
    if !as_json {
        print(&format!("{}\n", done.status.name()));
    }
    match done.status {
        Status::Completed => Ok(()),
        _ => Err(Failure::new(shown::failure(&done))),
    }
}

async fn download(
    service: &Service,
    id: &str,
    output: Option<&Path>,
    as_json: bool,
) -> Result<(), Failure> {
    check_target(output)?;
    let (mut bar, mut signals) = (Bar::new(), Signals::of_process()?);
    let done = watched(id)
        .follow(service, &mut bar, &mut signals, |_| Ok(()))
        .await?;
    let output = output.map(Path::to_owned);
    save(service, &done, output, as_json, &mut bar, &mut signals).await
}

const fn watched(id: &str) -> Watched<'_> {
    Watched {
        id,
        preview: PreviewMode::Auto,
        interrupt: Interrupt::Leaves,
    }
}

async fn cancel(service: &Service, args: &IdsArgs) -> Result<(), Failure> {
    for id in &args.ids {
        let task = service.client.cancel(id).await;
        let task = task.map_err(|error| about(id, service, &error))?;
        print(&if args.json {
            line(&task)?
        } else {
            format!("{}\n", task.id)
        });
    }
    Ok(())
}

async fn delete(service: &Service, args: &IdsArgs) -> Result<(), Failure> {
    for id in &args.ids {
        let deleted = service.client.delete(id).await;
        deleted.map_err(|error| about(id, service, &error))?;
        print(&if args.json {
            line(&json!({"id": id, "deleted": true}))?
        } else {
            format!("{id}\n")
        });
    }
    Ok(())
}

/// Prefixes an error with its task, for commands on several tasks.
fn about(id: &str, service: &Service, error: &Error) -> Failure {
    service
        .failure(error)
        .before(&format!("{}: ", id.escape_debug()))
}

fn line(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value);
    text.map(|text| text + "\n").map_err(unshown)
}

fn pretty(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(unshown)
}

fn unshown(error: serde_json::Error) -> Failure {
    Failure::because("The task cannot be shown", error)
}
