//! `kinora pause` and `kinora resume`. They work directly on the store, beside a running service, and
//! never create a store.

use std::sync::Arc;

use kinora_contract::Clock;
use kinora_contract::short_requests::pause_reason;
use kinora_store::{Pause, PauseStore, Pauses};

use crate::cli::{HomeArgs, PauseArgs, ResumeArgs};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::{print, printable};
use crate::system::SystemClock;
use crate::{shell_hint, store_access};

/// Pauses a model, or all.
pub(crate) fn pause(args: &PauseArgs) -> Result<(), Failure> {
    store_access::runtime()?.block_on(begin(args))
}

/// Resumes a model, or all.
pub(crate) fn resume(args: &ResumeArgs) -> Result<(), Failure> {
    store_access::runtime()?.block_on(end(args))
}

async fn begin(args: &PauseArgs) -> Result<(), Failure> {
    let config = store_access::config(&args.home)?;
    let model = args.model.as_deref().map(|name| config.model_id(name));
    let model = model.transpose()?;
    let reason = args.reason.as_deref().map_or(Ok(None), pause_reason);
    let pause = Pause {
        model: model.clone(),
        since_ms: SystemClock.now_ms(),
        reason: reason.map_err(|refusal| Failure::new(refusal.message))?,
    };
    let store = open(&config, "pause", &args.home)?;
    store.pause(pause).await?;
    let (what, verb) = shown(model.as_deref());
    print(&format!(
        "{what} {verb} paused: workers follow within two seconds. Running tasks end; new ones are accepted and wait.\n"
    ));
    Ok(())
}

async fn end(args: &ResumeArgs) -> Result<(), Failure> {
    let config = store_access::config(&args.home)?;
    // A model that the configuration does not have any more may still be paused.
    let model = args.model.as_ref().map(|name| {
        let configured = config.model_id(name);
        configured.unwrap_or_else(|_| name.clone())
    });
    let store = open(&config, "resume", &args.home)?;
    let was_paused = store.resume(model.as_deref(), SystemClock.now_ms()).await?;
    let left = store.pauses().await?;
    let (what, verb) = shown(model.as_deref());
    print(&match (was_paused, &model) {
        (true, _) => format!("{what} {verb} resumed.\n"),
        (false, Some(_)) => format!("{what} {verb} not paused.\n"),
        (false, None) => "There is no pause of all models.\n".to_owned(),
    });
    print(&still_paused(&left));
    Ok(())
}

fn open(config: &Config, words: &str, home: &HomeArgs) -> Result<Arc<dyn PauseStore>, Failure> {
    let opened = kinora_store::open_pauses(&config.store_url());
    opened.map_err(|error| shell_hint::open_failure(error, words, home))
}

/// The model and its verb.
fn shown(model: Option<&str>) -> (String, &'static str) {
    match model {
        Some(model) => (printable(model), "is"),
        None => ("All models".to_owned(), "are"),
    }
}

/// The pauses that are left, one per line.
fn still_paused(left: &Pauses) -> String {
    left.iter()
        .map(|pause| {
            let (what, verb) = shown(pause.model.as_deref());
            let reason = pause.reason.as_deref().map(printable);
            let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
            format!("{what} {verb} still paused{reason}.\n")
        })
        .collect()
}
