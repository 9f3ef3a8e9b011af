//! The service and key to use, and the meaning of its errors for a user at a terminal.

use std::path::Path;

use kinora_client::{Client, Error};

use crate::failure::{Exit, Failure};
use crate::table::printable;

const URL: &str = "KINORA_URL";
const KEY: &str = "KINORA_API_KEY";
/// The variable in the first start's greeting, accepted too.
const GREETED_KEY: &str = "KINORA_KEY";
/// Trusted certificates, in the variable that other programs use.
const CERTIFICATES: &str = "SSL_CERT_FILE";
const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// A service.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) client: Client,
    url: String,
    /// Whether the user named the service, instead of using the default.
    is_named: bool,
    has_key: bool,
}

impl Service {
    /// The service that the environment names, or one with default settings on this machine.
    pub(super) fn of_environment() -> Result<Self, Failure> {
        let url = variable(URL);
        let key = variable(KEY).or_else(|| variable(GREETED_KEY));
        Self::at(url.as_deref(), key)
    }

    /// The service at `url`, or the default one.
    pub(super) fn at(url: Option<&str>, key: Option<String>) -> Result<Self, Failure> {
        let address = url.unwrap_or(DEFAULT_URL);
        let mut builder = Client::builder(address);
        let has_key = key.is_some();
        if let Some(key) = key {
            builder = builder.api_key(key);
        }
        if let Some(path) = variable(CERTIFICATES) {
            builder = builder.root_certificates(certificates(Path::new(&path))?);
        }
        let client = builder.build().map_err(|error| {
            let what = format!("{error}. Check {URL} and {KEY}.");
            Failure::new(what).exit(Exit::Usage)
        })?;
        Ok(Self {
            client,
            url: address.trim_end_matches('/').to_owned(),
            is_named: url.is_some(),
            has_key,
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
            return Failure::new(text).exit(Exit::Unreachable);
        }
        if error.code() == Some("invalid_api_key") {
            let what = if self.has_key {
                format!("The server at {url} does not accept the key in {KEY}.")
            } else {
                format!("The server at {url} needs an API key.")
            };
            let text = format!(
                "{what}\n  Give it a key:  export {KEY}=kinora_...\n  The first `kinora serve` prints one or writes it to \
                 a file; `kinora keys create --name NAME` makes more."
            );
            return Failure::new(text).exit(Exit::Refused);
        }
        let mut text = printable(&error.to_string());
        let at_home = matches!(
            error,
            Error::Refused(_) | Error::File { .. } | Error::Connect { .. }
        );
        if !at_home {
            text = format!("{url}: {text}");
        }
        if let Some(advice) = error.advice() {
            text = format!("{text}\n  {advice}");
        }
        Failure::new(text).exit(exit(error))
    }
}

fn exit(error: &Error) -> Exit {
    match error {
        Error::Options(_) => Exit::Usage,
        Error::File { .. } => Exit::Failed,
        Error::Refused(refusal) if refusal.status < 500 => Exit::Refused,
        _ => Exit::Unreachable,
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn certificates(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| {
        let what = format!("{CERTIFICATES}={} cannot be read", path.display());
        Failure::because(what, error).exit(Exit::Usage)
    })
}
