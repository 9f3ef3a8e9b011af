//! The log on standard error: text for people, JSON for machines.

use std::io::IsTerminal;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::cli::LogFormat;
use crate::failure::Failure;

/// Reads the setting `log.level`.
pub(crate) fn targets(level: &str) -> Result<Targets, Failure> {
    level
        .parse()
        .map_err(|error| Failure::because("The setting log.level is wrong", error))
}

/// Starts the log of the process.
pub(crate) fn start(format: LogFormat, level: &str) -> Result<(), Failure> {
    let targets = targets(level)?;
    let terminal = std::io::stderr().is_terminal();
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(terminal);
    let text = match format {
        LogFormat::Text => true,
        LogFormat::Json => false,
        LogFormat::Auto => terminal,
    };
    let lines = if text {
        lines.with_target(false).boxed()
    } else {
        lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .boxed()
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(targets))
        .init();
    Ok(())
}
