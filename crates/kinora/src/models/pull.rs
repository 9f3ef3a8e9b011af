//! `kinora models pull`: downloads the missing files of models, several at a time, and explains what
//! to do about those that fail. The progress is one line for all of them on a terminal, and
//! elsewhere a line for each tenth of a file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kinora_contract::Stopwatch;
use kinora_http_download::{DownloadError, DownloadSource, DownloadWatcher, Downloader};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::cli::NamedArgs;
use crate::config::{Config, WeightSettings};
use crate::failure::{ExitKind, Failure};
use crate::output::{count, print, print_message, printable, size};
use crate::progress::{StatusLine, bar_cells, minutes_and_seconds};
use crate::weights::{self, ByEngine, FileState, WeightFile};
use crate::{shell_hint, system};

const AGAIN: &str = "Run the same command again to go on where it stopped.";
const TICK: Duration = Duration::from_millis(250);
/// Threads for TLS and copying; downloads wait for the network most of the time.
const THREADS_MAX: usize = 4;
/// Trusted certificates besides the public ones, in the variable that other programs use.
const CERTIFICATES: &str = "SSL_CERT_FILE";

/// Downloads what is missing, and prints a line for each file.
pub(super) fn run(args: &NamedArgs) -> Result<(), Failure> {
    let config = Config::load(&args.home)?;
    let models = weights::find_models(&config, &args.names)?;
    let files = weights::files_of_models(&config, &models)?;
    let mut advice = String::new();
    for model in models {
        if let Some(by_engine) = weights::by_engine(&config.engine(&model.engine)?) {
            advice += &by_engine_advice(&model.id, &by_engine);
        }
    }
    if files.is_empty() && advice.is_empty() {
        let names = args.names.join(" ");
        advice = format!("{names} needs no files: there is nothing to download.\n");
    }
    print(&advice);
    fetch(&files, &config.weights)
}

/// Downloads those of `files` that are missing, and prints a line for each file.
pub(super) fn fetch(files: &[WeightFile], weights: &WeightSettings) -> Result<(), Failure> {
    let (mut sources, mut failures) = (Vec::new(), Vec::new());
    for file in files {
        match plan(file, weights) {
            Ok(source) => sources.extend(source),
            Err(failure) => {
                print_message(&failure.to_string());
                failures.push(failure);
            }
        }
    }
    prepare(&sources, weights)?;
    if !sources.is_empty() {
        failures.extend(download(weights, sources)?);
    }
    match failures.first() {
        None => Ok(()),
        Some(first) => Err(Failure::new(format!(
            "{} could not be downloaded, see above",
            count(u32::try_from(failures.len()).unwrap_or(u32::MAX), "file")
        ))
        .exit(first.exit_kind())),
    }
}

/// How to get the files that a model's engine gets by itself.
fn by_engine_advice(model: &str, by_engine: &ByEngine) -> String {
    let first = format!(
        "{}: the engine gets its files by itself, usually at its first start",
        printable(model)
    );
    let Some(repository) = &by_engine.repository else {
        return format!(
            "{first}; the configuration has no [[engines.files]] to download (docs/models.md)\n"
        );
    };
    let cache = by_engine.cache.as_ref();
    let cache = cache.map_or_else(String::new, |path| {
        format!("HF_HOME={} ", shell_hint::shell_quoted(path.as_ref()))
    });
    format!(
        "{first}. To download them now, as the user of the service: {cache}hf download {repository}\n"
    )
}

/// The download of a file; `None` if it is present.
fn plan(file: &WeightFile, weights: &WeightSettings) -> Result<Option<DownloadSource>, Failure> {
    let path = file.path.display();
    match file.state() {
        FileState::Complete(bytes) => {
            print(&format!("{path}: present, {}\n", size(bytes)));
            return Ok(None);
        }
        FileState::WrongLength { found, expected } => {
            return Err(Failure::new(format!(
                "{path}: it has {found} bytes, and the configuration says {expected}. Remove the file to \
                 download it again, or correct its bytes and sha256 in the configuration."
            )));
        }
        FileState::Unreadable(why) => return Err(Failure::new(format!("{path}: {why}."))),
        FileState::Missing(_) => {}
    }
    let source = file.source.as_ref().and_then(|one| Some((one, one.url()?)));
    let Some((source, url)) = source else {
        return Err(Failure::new(format!(
            "{path}: the configuration has no source for it. Put the file there, or add its url under \
             [[engines.files]] (docs/models.md)."
        )));
    };
    Ok(Some(source.source(weights.address(&url)?)))
}

/// Makes the folders, and checks that the disk can hold what is known to come.
pub(super) fn prepare(sources: &[DownloadSource], weights: &WeightSettings) -> Result<(), Failure> {
    for source in sources {
        let folder = source.path.parent().unwrap_or(Path::new(""));
        kinora_system::durable::make_folder(folder).map_err(|error| {
            Failure::new(format!(
                "The folder {} cannot be made: {error}. Make it for this user, or write other paths into the \
                 configuration.",
                folder.display()
            ))
        })?;
    }
    // All lengths together: files of several gigabytes may fit one by one and not as a whole, which
    // would show only after hours.
    match (kinora_http_download::check_room(sources), sources.first()) {
        (Err(error), Some(first)) => Err(explain(&error, first, weights)),
        _ => Ok(()),
    }
}

fn download(
    weights: &WeightSettings,
    sources: Vec<DownloadSource>,
) -> Result<Vec<Failure>, Failure> {
    let downloader = Downloader::new(weights.options(certificates()?)?)
        .map_err(|error| Failure::because("The section [weights] is invalid", error))?;
    let threads = THREADS_MAX.min(weights.downloads_max as usize);
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(|error| Failure::because("The command could not start", error))?;
    interruptible(runtime, download_all(weights, downloader, sources))
}

/// Runs `work` until it ends or Ctrl-C.
pub(super) fn interruptible<T>(
    runtime: Runtime,
    work: impl Future<Output = T>,
) -> Result<T, Failure> {
    let done = runtime.block_on(async {
        tokio::select! {
            done = work => Ok(done),
            // Dropping the work stops all transfers. Their partial files stay, for the next run to continue.
            _ = tokio::signal::ctrl_c() => {
                Err(Failure::new(format!("Interrupted. {AGAIN}")).exit(ExitKind::Interrupted))
            }
        }
    });
    // A name lookup that hangs must not keep the process alive.
    runtime.shutdown_background();
    done
}

/// Downloads all files; returns the failures, which are printed already.
async fn download_all(
    weights: &WeightSettings,
    downloader: Downloader,
    sources: Vec<DownloadSource>,
) -> Vec<Failure> {
    let board = DownloadBoard::new(&sources);
    let downloader = Arc::new(downloader);
    let turns = Arc::new(Semaphore::new(weights.downloads_max as usize));
    let mut running = JoinSet::new();
    for (source, row) in sources.into_iter().zip(&board.rows) {
        let (downloader, turns, row) = (downloader.clone(), turns.clone(), row.clone());
        running.spawn(async move {
            // Never closed, so there is always a turn.
            let _turn = turns.acquire_owned().await;
            let got = downloader.get(&source, &*row).await;
            row.is_checked.store(false, Ordering::Relaxed);
            (source, got)
        });
    }
    let mut ticks = tokio::time::interval(TICK);
    let mut failures = Vec::new();
    while !running.is_empty() {
        tokio::select! {
            ended = running.join_next() => {
                board.line.clear();
                if let Some(Ok((source, got))) = ended {
                    failures.extend(report_outcome(&source, got, weights));
                }
            }
            _ = ticks.tick() => board.draw(),
        }
    }
    failures
}

/// Prints the outcome of a download; returns its failure.
fn report_outcome(
    source: &DownloadSource,
    got: Result<u64, DownloadError>,
    weights: &WeightSettings,
) -> Option<Failure> {
    match got {
        Ok(bytes) => {
            let checked = match source.sha256 {
                Some(_) => "SHA-256 is right",
                None => "only its length was checked: the configuration has no sha256",
            };
            let (path, size) = (source.path.display(), size(bytes));
            print(&format!("{path}: downloaded, {size}; {checked}\n"));
            None
        }
        Err(error) => {
            let failure = explain(&error, source, weights);
            print_message(&failure.to_string());
            Some(failure)
        }
    }
}

pub(super) fn certificates() -> Result<Vec<u8>, Failure> {
    let path = std::env::var_os(CERTIFICATES).filter(|path| !path.is_empty());
    let Some(path) = path else {
        return Ok(Vec::new());
    };
    std::fs::read(&path).map_err(|error| {
        let what = format!("{CERTIFICATES}={} cannot be read", path.display());
        Failure::because(what, error).exit(ExitKind::Usage)
    })
}

/// Explains why the file of `source` could not be downloaded.
fn explain(error: &DownloadError, source: &DownloadSource, weights: &WeightSettings) -> Failure {
    let path = source.path.display();
    let what = match error {
        DownloadError::Room {
            folder,
            needed,
            free,
        } => format!(
            "the file system of {} has {} free, and {} are needed",
            folder.display(),
            size(*free),
            size(*needed)
        ),
        other => printable(&other.to_string()),
    };
    let advice = advice(error, source, weights);
    Failure::new(format!("{path}: {what}. {advice}")).exit(exit_kind(error))
}

fn advice(error: &DownloadError, source: &DownloadSource, weights: &WeightSettings) -> String {
    match error {
        DownloadError::Status { status: 401 | 403, .. } if weights.has_token() => format!(
            "The token for {} does not open it: check the token and its permissions, and accept the licence on the \
             publisher's page.",
            weights.token_origin
        ),
        DownloadError::Status { status: 401 | 403, .. } => format!(
            "The publisher may hand it out to known accounts only: accept the licence on its page, make a token \
             that may read, and set weights.token_file and weights.token_origin = \"{}\".",
            source.url.origin().ascii_serialization()
        ),
        DownloadError::Status { status: 404 | 410, .. } => {
            "The publisher has moved or removed it: correct its url in the configuration.".to_owned()
        }
        DownloadError::Hash { .. } => "Nothing was kept. If the publisher has replaced the file on purpose, correct its sha256 \
                               in the configuration; otherwise do not use it, and try another mirror."
            .to_owned(),
        DownloadError::Length { .. } => "If the publisher has replaced the file on purpose, correct its bytes and sha256 in the \
                                 configuration; otherwise try another mirror."
            .to_owned(),
        DownloadError::Room { .. } => "Free some, or name another folder in the configuration.".to_owned(),
        DownloadError::Busy(_) => "Wait until it has ended.".to_owned(),
        DownloadError::File { .. } => "Give this user access to it, or name another folder in the configuration.".to_owned(),
        DownloadError::Options(_) => "Correct the section [weights] of the configuration.".to_owned(),
        _ => AGAIN.to_owned(),
    }
}

fn exit_kind(error: &DownloadError) -> ExitKind {
    match error {
        DownloadError::Options(_) => ExitKind::Usage,
        DownloadError::Status { status, .. } if *status < 500 => ExitKind::Refused,
        error if error.is_transient() => ExitKind::Unreachable,
        DownloadError::Status { .. } | DownloadError::Answer(_) => ExitKind::Unreachable,
        _ => ExitKind::Failed,
    }
}

/// Minimum time for an estimate of the speed.
const SECONDS_MIN: u64 = 2;

/// The progress of all files.
#[derive(Debug)]
struct DownloadBoard {
    line: StatusLine,
    begun: Stopwatch,
    rows: Vec<Arc<DownloadRow>>,
}

/// The progress of one file.
#[derive(Debug)]
struct DownloadRow {
    name: String,
    line: StatusLine,
    held: AtomicU64,
    /// Length of the file in bytes; 0 while it is unknown.
    whole: AtomicU64,
    received: AtomicU64,
    /// Number of tenths that have been reported.
    reported_tenths: AtomicU64,
    is_checked: AtomicBool,
}

impl DownloadBoard {
    /// A row for each source, in their order.
    fn new(sources: &[DownloadSource]) -> Self {
        let line = StatusLine::new();
        let rows = sources.iter().map(|source| {
            let held = kinora_http_download::partial_bytes(&source.path);
            let name = source.path.file_name().unwrap_or_default();
            Arc::new(DownloadRow {
                name: printable(&name.to_string_lossy()),
                line,
                held: AtomicU64::new(held.unwrap_or(0)),
                whole: AtomicU64::new(source.bytes.unwrap_or(0)),
                received: AtomicU64::new(0),
                reported_tenths: AtomicU64::new(0),
                is_checked: AtomicBool::new(false),
            })
        });
        Self {
            line,
            begun: system::stopwatch(),
            rows: rows.collect(),
        }
    }

    /// Updates the line on the terminal.
    fn draw(&self) {
        if !self.line.is_shown() {
            return;
        }
        // Relaxed loads, here and below: each counter is shown for itself, and nothing is decided
        // by how they relate.
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let held = self.rows.iter().map(|row| load(&row.held)).sum();
        let received = self.rows.iter().map(|row| load(&row.received)).sum();
        let wholes = self.rows.iter().map(|row| load(&row.whole));
        let whole = wholes.map(|whole| (whole > 0).then_some(whole)).sum();
        let seconds = self.begun.elapsed().as_secs();
        let mut text = progress_text(held, whole, received, seconds);
        let is_checked = |row: &&Arc<DownloadRow>| row.is_checked.load(Ordering::Relaxed);
        if let Some(row) = self.rows.iter().find(is_checked) {
            text = format!("{text}  checking {}", row.name);
        }
        self.line.show(&text);
    }
}

impl Drop for DownloadBoard {
    fn drop(&mut self) {
        self.line.clear();
    }
}

impl DownloadRow {
    fn announce(&self, text: &str) {
        if !self.line.is_shown() {
            print_message(&format!("{}: {text}", self.name));
        }
    }
}

impl DownloadWatcher for DownloadRow {
    fn begun(&self, held: u64, whole: u64) {
        self.is_checked.store(false, Ordering::Relaxed);
        self.held.store(held, Ordering::Relaxed);
        self.whole.store(whole, Ordering::Relaxed);
        let (all, here) = (size(whole), size(held));
        match held {
            0 => self.announce(&format!("downloading {all}")),
            _ => self.announce(&format!("downloading the rest of {all}, {here} are here")),
        }
        self.reported_tenths
            .store(tenths(held, whole), Ordering::Relaxed);
    }

    fn grown(&self, held: u64) {
        let before = self.held.swap(held, Ordering::Relaxed);
        let more = held.saturating_sub(before);
        self.received.fetch_add(more, Ordering::Relaxed);
        let tenths = tenths(held, self.whole.load(Ordering::Relaxed));
        // Where no terminal overwrites the line, ten lines for a file are enough: a log of a
        // nightly pull stays readable.
        if tenths > self.reported_tenths.swap(tenths, Ordering::Relaxed) {
            self.announce(&format!("{} %", tenths * 10));
        }
    }

    fn checking(&self) {
        self.is_checked.store(true, Ordering::Relaxed);
        self.announce("checking its SHA-256");
    }

    fn retrying(&self, error: &DownloadError, wait: Duration, retry: u32, retries_max: u32) {
        self.is_checked.store(false, Ordering::Relaxed);
        self.line.clear();
        print_message(&format!(
            "{}: {}; trying again in {:.0} s ({retry} of {retries_max})",
            self.name,
            printable(&error.to_string()),
            wait.as_secs_f64().ceil()
        ));
    }
}

fn tenths(held: u64, whole: u64) -> u64 {
    held.saturating_mul(10).checked_div(whole).unwrap_or(0)
}

/// The line for these sums of bytes, given the seconds since the start. `whole` is `None` while a length is unknown.
fn progress_text(held: u64, whole: Option<u64>, received: u64, seconds: u64) -> String {
    let time = minutes_and_seconds(seconds);
    let speed = received.checked_div(seconds);
    let speed = speed.filter(|speed| seconds >= SECONDS_MIN && *speed > 0);
    let per_second = speed.map_or_else(String::new, |speed| format!("  {}/s", size(speed)));
    let Some(whole) = whole.filter(|whole| *whole > 0) else {
        return format!("{}{per_second}  {time}", size(held));
    };
    let percent = held.saturating_mul(100) / whole;
    let percent = u8::try_from(percent.min(100)).unwrap_or(100);
    let left = speed.map_or_else(String::new, |speed| {
        let seconds = whole.saturating_sub(held) / speed;
        format!(", about {} left", minutes_and_seconds(seconds))
    });
    format!(
        "{} {percent:3} %  {} of {}{per_second}  {time}{left}",
        bar_cells(percent),
        size(held),
        size(whole)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_a_person_waits_for() {
        let gb = 1_000_000_000;
        for (held, whole, received, seconds, expected) in [
            (
                0,
                Some(4 * gb),
                0,
                0,
                "[------------------------]   0 %  0 bytes of 4.0 GB  0:00",
            ),
            (
                2 * gb,
                Some(4 * gb),
                gb,
                10,
                "[############------------]  50 %  2.0 GB of 4.0 GB  100 MB/s  0:10, about 0:20 left",
            ),
            (2 * gb, None, gb, 10, "2.0 GB  100 MB/s  0:10"),
        ] {
            let text = progress_text(held, whole, received, seconds);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn tenths_of_nothing_are_none() {
        assert_eq!([tenths(0, 0), tenths(5, 0), tenths(99, 100)], [0, 0, 9]);
    }
}
