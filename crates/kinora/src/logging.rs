//! The log on standard error: text for people, JSON for machines. The service's log never delays a
//! request (`queue.rs`); an engine process writes its own directly. Each line of a request ends with
//! the request's id, so that the `x-request-id` of an answer leads to every line about it.

mod queue;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::panic::PanicHookInfo;
use std::time::Duration;

use clap::ValueEnum;
use kinora_api::RequestId;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{self, FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use crate::failure::Failure;
use queue::LogQueue;

/// Time limit for writing the last lines when the process ends.
const CLOSE_MAX: Duration = Duration::from_secs(1);
/// Time limit for the lines of a panic: the process may end soon after it.
const PANIC_MAX: Duration = Duration::from_millis(200);

/// Log formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// The log of the service. Dropping it writes the last lines.
#[derive(Debug)]
pub(crate) struct LogGuard(LogQueue);

impl Drop for LogGuard {
    fn drop(&mut self) {
        self.0.close(CLOSE_MAX);
    }
}

/// Parses the setting `log.level`.
pub(crate) fn targets(level: &str) -> Result<Targets, Failure> {
    level
        .parse()
        .map_err(|error| Failure::because("The setting log.level is invalid", error))
}

/// Starts the log of a service.
pub(crate) fn start(format: LogFormat, level: &str) -> Result<LogGuard, Failure> {
    let targets = targets(level)?;
    // A separate descriptor: the standard library's has a lock, which a stalled reader would block
    // for everybody.
    let queue = io::stderr()
        .as_fd()
        .try_clone_to_owned()
        .and_then(|stderr| LogQueue::start(File::from(stderr)))
        .map_err(|error| Failure::because("The log cannot be started", error))?;
    install(queue.clone(), format, targets);
    // The standard hook would write to standard error directly: it would wait for a stalled reader,
    // and its lines would not be JSON.
    let of_panics = queue.clone();
    std::panic::set_hook(Box::new(move |panic| log_panic(panic, &of_panics)));
    Ok(LogGuard(queue))
}

/// Starts the log of a process that serves no requests.
pub(crate) fn start_direct(format: LogFormat, level: &str) -> Result<(), Failure> {
    install(io::stderr, format, targets(level)?);
    Ok(())
}

fn install<W>(writer: W, format: LogFormat, targets: Targets)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // Asked of standard error itself: the writer is a copy of its descriptor, of which the
    // formatter knows nothing.
    let terminal = io::stderr().is_terminal();
    let is_text = match format {
        LogFormat::Text => true,
        LogFormat::Json => false,
        LogFormat::Auto => terminal,
    };
    let lines = if is_text {
        let format = fmt::format().with_target(false).with_ansi(terminal);
        let lines = fmt::layer().with_writer(writer).with_ansi(terminal);
        lines.event_format(WithRequest::text(format)).boxed()
    } else {
        json_lines(writer)
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(targets))
        .init();
}

/// Lines of JSON to `writer`.
fn json_lines<W>(writer: W) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let format = fmt::format().json().flatten_event(true);
    let lines = fmt::layer().with_writer(writer).with_ansi(false);
    lines
        .event_format(WithRequest::json(format.with_span_list(false)))
        .fmt_fields(JsonFields::new())
        .boxed()
}

/// A log in JSON to `writer`, for the threads that have it as their default.
#[cfg(feature = "test-faults")]
pub(crate) fn json_to<W>(writer: W, level: &str) -> Result<tracing::Dispatch, Failure>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = json_lines(writer).with_filter(targets(level)?);
    Ok(tracing_subscriber::registry().with(lines).into())
}

/// Sends messages of the standard library to standard error, which may have no reader.
fn log_panic(panic: &PanicHookInfo<'_>, queue: &LogQueue) {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let cause = panic.payload_as_str().unwrap_or("unknown cause");
    let place = panic.location().map(ToString::to_string);
    let backtrace = Backtrace::capture();
    let backtrace =
        (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    tracing::error!(thread, place, cause, backtrace, "a thread panicked");
    // The process may be about to end, so this waits until the line is written; but not for long,
    // since the reader may have stalled.
    queue.flush(PANIC_MAX);
}

/// A format of log lines, with the way to add the id.
struct WithRequest<F> {
    lines: F,
    /// The field is inserted before this end of a line.
    end: &'static str,
    write: fn(&mut String, RequestId) -> std::fmt::Result,
}

impl<F> WithRequest<F> {
    /// Lines of text.
    fn text(lines: F) -> Self {
        Self {
            lines,
            end: "\n",
            write: |line, id| write!(line, " request={id}"),
        }
    }

    /// Lines of one JSON object each.
    fn json(lines: F) -> Self {
        Self {
            lines,
            end: "}\n",
            write: |line, id| write!(line, r#","request":"{id}""#),
        }
    }
}

impl<S, N, F> FormatEvent<S, N> for WithRequest<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let Some(id) = RequestId::current() else {
            return self.lines.format_event(context, writer, event);
        };
        let mut line = String::new();
        self.lines
            .format_event(context, Writer::new(&mut line), event)?;
        // The formatter returns complete lines. The id goes before their end, so that a JSON line
        // stays one object.
        if line.ends_with(self.end) {
            line.truncate(line.len() - self.end.len());
            (self.write)(&mut line, id)?;
            line.push_str(self.end);
        }
        writer.write_str(&line)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc;

    use super::*;

    /// Standard error of the test.
    struct Sent(mpsc::Sender<String>);

    impl Write for Sent {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.0.send(text).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_panic_is_a_line_of_the_log() {
        let (sender, sent) = mpsc::channel();
        let queue = LogQueue::start(Sent(sender)).unwrap();
        let lines = fmt::layer().with_ansi(false).with_writer(queue.clone());
        let log = tracing_subscriber::registry().with(lines);
        tracing::subscriber::with_default(log, || {
            std::panic::set_hook(Box::new(move |panic| log_panic(panic, &queue)));
            std::panic::catch_unwind(|| panic!("on purpose")).unwrap_err();
            let _ = std::panic::take_hook();
        });
        let line = sent.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(
            line.contains("a thread panicked") && line.contains("on purpose"),
            "{line}"
        );
        assert!(line.contains("logging.rs:"), "{line}");
    }
}
