//! The service and key to use: those that the environment names, or a server of this command's own
//! (`--local`); and the meaning of a service's errors for a user at a terminal.

use std::fs::{self, DirBuilder};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;

use kinora_client::{Client, Error};
use kinora_contract::KeyText;
use serde_json::Value;

use crate::failure::{ExitKind, Failure};
use crate::output::printable;
use crate::{folder, system};

const URL: &str = "KINORA_URL";
/// The variables that may hold the key; the first one that is set counts. The second is that of the greeting of a first start, of
/// Studio and of the documents, so messages to users without a key name it.
const KEYS: [&str; 2] = ["KINORA_API_KEY", GREETED_KEY];
const GREETED_KEY: &str = "KINORA_KEY";
/// Trusted certificates, in the variable that other programs use.
const CERTIFICATES: &str = "SSL_CERT_FILE";
const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// A service.
#[derive(Debug)]
pub(super) struct ServiceClient {
    pub(super) client: Client,
    url: String,
    /// Whether the user named the service, instead of using the default.
    is_named: bool,
    key: Option<KeySource>,
}

/// The key in use, as messages describe it.
#[derive(Clone, Copy, Debug)]
struct KeySource {
    /// The variable or the file that has it.
    place: &'static str,
    is_well_formed: bool,
}

impl ServiceClient {
    /// The service that the environment names, or one with default settings on this machine.
    pub(super) fn from_environment() -> Result<Self, Failure> {
        let url = variable(URL);
        let key = KEYS
            .into_iter()
            .find_map(|name| Some((variable(name)?, name)));
        Self::connect(url.as_deref(), key)
    }

    /// The service at `url`, or the default one, with a key and the name of its place.
    fn connect(url: Option<&str>, key: Option<(String, &'static str)>) -> Result<Self, Failure> {
        let address = url.unwrap_or(DEFAULT_URL);
        let mut builder = Client::builder(address);
        let source = key.as_ref().map(|(text, place)| KeySource {
            place,
            is_well_formed: KeyText::parse(text.trim()).is_some(),
        });
        if let Some((text, _)) = key {
            builder = builder.api_key(text);
        }
        if let Some(path) = variable(CERTIFICATES) {
            builder = builder.root_certificates(certificates(Path::new(&path))?);
        }
        let client = builder.build().map_err(|error| {
            let key = source.map_or(GREETED_KEY, |source| source.place);
            let what = format!("{error}. Check {URL} and {key}.");
            Failure::new(what).exit(ExitKind::Usage)
        })?;
        Ok(Self {
            client,
            url: address.trim_end_matches('/').to_owned(),
            is_named: url.is_some(),
            key: source,
        })
    }

    /// Explains `error`, and what to do next.
    pub(super) fn failure(&self, error: &Error) -> Failure {
        let url = &self.url;
        if matches!(error, Error::Connect { .. }) && !self.is_named {
            let text = format!(
                "No server answers at {url}.\n  Start one in another terminal:  kinora serve\n  Or name yours:  export \
                 {URL}=https://video.example.com\n  Or make one video without a server:  kinora generate --local \
                 \"a prompt\""
            );
            return Failure::new(text).exit(ExitKind::Unreachable);
        }
        if error.code() == Some("invalid_api_key") {
            return self.key_failure();
        }
        let mut text = printable(&error.to_string());
        let at_home = matches!(
            error,
            Error::Refused(_)
                | Error::File { .. }
                | Error::Unreadable { .. }
                | Error::Connect { .. }
        );
        if !at_home {
            text = format!("{url}: {text}");
        }
        if let Some(advice) = error.advice() {
            text = format!("{text}\n  {advice}");
        }
        Failure::new(text).exit(exit_kind(error))
    }

    /// Explains that the service wants a key, or another one.
    fn key_failure(&self) -> Failure {
        let url = &self.url;
        let (what, variable) = match self.key {
            None => (
                format!("The server at {url} needs an API key."),
                GREETED_KEY,
            ),
            Some(KeySource {
                place,
                is_well_formed,
            }) => {
                let flaw = if is_well_formed {
                    "It may be revoked or expired, or of another server."
                } else {
                    "It is mistyped or incomplete: a key is kinora_ and 36 letters and digits."
                };
                let what =
                    format!("The server at {url} does not accept the key in {place}. {flaw}");
                (what, place)
            }
        };
        let text = format!(
            "{what}\n  Give it a key:  export {variable}=kinora_...\n  The first `kinora serve` prints one or writes it to a \
             file; `kinora keys create --name NAME` makes more."
        );
        Failure::new(text).exit(ExitKind::Refused)
    }
}

fn exit_kind(error: &Error) -> ExitKind {
    match error {
        Error::Options(_) | Error::Unreadable { .. } => ExitKind::Usage,
        Error::File { .. } => ExitKind::Failed,
        Error::Refused(refusal) if refusal.status < 500 => ExitKind::Refused,
        _ => ExitKind::Unreachable,
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn certificates(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| {
        let what = format!("{CERTIFICATES}={} cannot be read", path.display());
        Failure::because(what, error).exit(ExitKind::Usage)
    })
}

/// A running server; stopped and removed when dropped.
#[derive(Debug)]
pub(super) struct LocalServer {
    folder: PathBuf,
    server: Child,
    url: String,
}

impl LocalServer {
    /// Starts the server, and returns once it serves.
    pub(super) fn start(config: Option<&Path>) -> Result<Self, Failure> {
        // A whole service and not its engine alone: --local then does exactly what a server does,
        // with all of its checks.
        let name = format!(
            "kinora-local-{:016x}",
            u64::from_le_bytes(system::random()?)
        );
        let folder = std::env::temp_dir().join(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(unstarted)?;
        let server = command(&folder, config).and_then(|mut command| command.spawn());
        let server = server.map_err(|error| {
            // The folder is still empty.
            let _ = fs::remove_dir(&folder);
            unstarted(error)
        })?;
        let mut local = Self {
            folder,
            server,
            url: String::new(),
        };
        let lines = local.server.stderr.take().map(BufReader::new);
        local.url = lines.and_then(wait_for_address).ok_or_else(|| {
            Failure::new(
                "The server for --local did not start; run `kinora doctor` to find out why.",
            )
        })?;
        Ok(local)
    }

    /// The service, with the key that its first start created.
    pub(super) fn service(&self) -> Result<ServiceClient, Failure> {
        let key = folder::read_first_key(&self.folder.join("data"))?;
        ServiceClient::connect(Some(&self.url), Some((key, "its file first-key")))
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        // All of its data is removed, so an orderly stop would be pointless.
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn unstarted(error: std::io::Error) -> Failure {
    Failure::because("A server could not be started", error)
}

fn command(folder: &Path, config: Option<&Path>) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    // Above all KINORA_STORE_URL: a trial on a laptop must not put its task into the production
    // database that the shell is set up for.
    let settings = std::env::vars_os().map(|(name, _)| name);
    for name in settings.filter(|name| name.to_string_lossy().starts_with("KINORA_")) {
        command.env_remove(name);
    }
    command
        .args([
            "serve",
            "--log-format",
            "json",
            "--listen",
            "127.0.0.1:0",
            "--data",
        ])
        .arg(folder.join("data"))
        .args(config.map(|_| "--config"))
        .args(config)
        // Overrides the configuration file, whose store must not be used.
        .envs([
            ("KINORA_STORE_URL", ""),
            ("KINORA_RESULTS_URL", ""),
            ("KINORA_BASE_URL", ""),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // Ctrl-C is only for this command, which stops the server itself.
        .process_group(0);
    Ok(command)
}

/// Finds the address in the start line of the log; reads and drops the rest, so that the server
/// never blocks.
fn wait_for_address(mut log: BufReader<ChildStderr>) -> Option<String> {
    let mut line = String::new();
    while log.read_line(&mut line).ok()? > 0 {
        let event: Option<Value> = serde_json::from_str(&line).ok();
        if let Some(event) = event.filter(|event| event["message"] == "serving") {
            let url = event["base_url"].as_str()?.to_owned();
            thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
            return Some(url);
        }
        line.clear();
    }
    None
}
