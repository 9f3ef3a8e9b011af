//! `kinora models pull`: downloads the missing files of models, several at a time, and explains what
//! to do about those that fail.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kinora_http_download::{DownloadError, DownloadSource, Downloader};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::download_board::DownloadBoard;
use crate::cli::NamedArgs;
use crate::config::{Config, WeightSettings};
use crate::failure::{ExitKind, Failure};
use crate::output::{count, print, print_message, printable, size};
use crate::shell_hint;
use crate::weights::{self, ByEngine, FileState, WeightFile};

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
    let mut is_told = false;
    for model in models {
        if let Some(by_engine) = weights::by_engine(&config.engine(&model.engine)?) {
            print(&by_engine_advice(&model.id, &by_engine));
            is_told = true;
        }
    }
    if files.is_empty() {
        if !is_told {
            print(&format!(
                "{} needs no files: there is nothing to download.\n",
                args.names.join(" ")
            ));
        }
        return Ok(());
    }
    let (mut sources, mut failures) = (Vec::new(), Vec::new());
    for file in &files {
        match plan(file, &config.weights) {
            Ok(source) => sources.extend(source),
            Err(failure) => {
                print_message(&failure.to_string());
                failures.push(failure);
            }
        }
    }
    prepare(&sources, &config.weights)?;
    if !sources.is_empty() {
        failures.extend(download(&config.weights, sources)?);
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
fn prepare(sources: &[DownloadSource], weights: &WeightSettings) -> Result<(), Failure> {
    for source in sources {
        let folder = source.path.parent().unwrap_or(Path::new(""));
        if !folder.as_os_str().is_empty() {
            kinora_system::durable::make_folder(folder).map_err(|error| {
                Failure::new(format!(
                    "The folder {} cannot be made: {error}. Make it for this user, or write other paths into the \
                     configuration.",
                    folder.display()
                ))
            })?;
        }
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
    let options = weights.options(certificates()?)?;
    let downloader = Downloader::new(options)
        .map_err(|error| Failure::because("The section [weights] is invalid", error))?;
    let downloads_max = weights.downloads_max as usize;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(downloads_max.min(THREADS_MAX))
        .enable_all()
        .build()
        .map_err(|error| Failure::because("The command could not start", error))?;
    let done = runtime.block_on(download_all(weights, downloader, sources));
    // A name lookup that hangs must not keep the process alive.
    runtime.shutdown_background();
    done
}

/// Downloads all files; returns the failures, which are printed already.
async fn download_all(
    weights: &WeightSettings,
    downloader: Downloader,
    sources: Vec<DownloadSource>,
) -> Result<Vec<Failure>, Failure> {
    let board = DownloadBoard::new(&sources);
    let downloader = Arc::new(downloader);
    let turns = Arc::new(Semaphore::new(weights.downloads_max as usize));
    let mut running = JoinSet::new();
    for (source, row) in sources.into_iter().zip(board.rows()) {
        let (downloader, turns, row) = (downloader.clone(), turns.clone(), row.clone());
        running.spawn(async move {
            // Never closed, so there is always a turn.
            let _turn = turns.acquire_owned().await;
            let got = downloader.get(&source, &*row).await;
            row.end();
            (source, got)
        });
    }
    let mut ticks = tokio::time::interval(TICK);
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    let mut failures = Vec::new();
    while !running.is_empty() {
        tokio::select! {
            ended = running.join_next() => {
                board.clear();
                if let Some(Ok((source, got))) = ended {
                    failures.extend(report_outcome(&source, got, weights));
                }
            }
            _ = ticks.tick() => board.draw(),
            // Returning drops the set and with it all transfers. Their partial files stay, for the
            // next run to continue.
            _ = &mut interrupted => {
                let text = "Interrupted. Run the same command again to go on where it stopped.";
                return Err(Failure::new(text).exit(ExitKind::Interrupted));
            }
        }
    }
    Ok(failures)
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

fn certificates() -> Result<Vec<u8>, Failure> {
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
        _ => "Run the same command again to go on where it stopped.".to_owned(),
    }
}

fn exit_kind(error: &DownloadError) -> ExitKind {
    match error {
        DownloadError::Options(_) => ExitKind::Usage,
        DownloadError::Status { status, .. } if *status < 500 => ExitKind::Refused,
        DownloadError::Connect { .. }
        | DownloadError::Broken(_)
        | DownloadError::Stalled(_)
        | DownloadError::Status { .. }
        | DownloadError::Changed
        | DownloadError::Answer(_) => ExitKind::Unreachable,
        _ => ExitKind::Failed,
    }
}
