//! The servers of one engine and their limits, and what the operator's settings of both kinds have in common. Every
//! time and size is limited; no switch disables a limit.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kinora_engine::{KindError, ReferenceFile};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::error::UpstreamError;
use super::key::KeySource;
use super::watch::ExchangeWatcher;

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedServer {
    /// Its name in tickets and logs; must stay the same across restarts.
    pub name: String,
    /// `http://10.0.0.7:8000/v1`.
    pub base_url: String,
}

/// The servers of one engine and their limits.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The servers; at least one, and each name once.
    pub servers: Vec<NamedServer>,
    /// The API key of every server.
    pub key: KeySource,
    /// Additional trusted certificate authorities, as PEM.
    pub extra_roots_pem: Option<Vec<u8>>,
    /// Is shown every exchange with the servers, without keys.
    pub watcher: Option<Arc<dyn ExchangeWatcher>>,
    /// Maximum time for a connection, without the TLS handshake.
    pub connect_timeout: Duration,
    /// Maximum time for a whole submit, and for each upload.
    pub submit_timeout: Duration,
    /// Maximum time for any other answer, and for the head of a film.
    pub answer_timeout: Duration,
    /// Maximum time for forwarding a cancel, and again for a submit in flight at that moment.
    pub cancel_timeout: Duration,
    /// Maximum time for probing an excluded server.
    pub probe_timeout: Duration,
    /// At least `rate_bytes_min` of a film must arrive in each window of this length.
    pub rate_window: Duration,
    /// See `rate_window`; the last window may have fewer.
    pub rate_bytes_min: u64,
    /// Maximum size of a submit's body, including references, and of an uploaded file; it is held in memory.
    pub request_bytes_max: u64,
    /// Maximum size of an answer other than a film.
    pub answer_bytes_max: usize,
    /// Maximum size of a film.
    pub result_bytes_max: u64,
    /// Time between polls, unless the server requests another.
    pub poll_every: Duration,
    /// The first wait after a failure; later waits double.
    pub backoff_first: Duration,
    /// Maximum wait after a failure, unless the server requests a longer one.
    pub backoff_max: Duration,
    /// Number of consecutive failures after which a server is excluded until a probe succeeds.
    pub failures_max: u32,
    /// Maximum time of a run without a sign of life: at most the model's progress limit.
    pub silence_max: Duration,
    /// Maximum time of a run.
    pub run_max: Duration,
    /// Maximum number of attempts to read a film.
    pub result_attempts_max: u32,
    /// Maximum number of resubmits of a job that its server no longer knows.
    pub resubmits_max: u32,
}

impl ServerOptions {
    /// The default options for these servers.
    pub fn new(servers: Vec<NamedServer>) -> Self {
        Self {
            servers,
            key: KeySource::None,
            extra_roots_pem: None,
            watcher: None,
            connect_timeout: Duration::from_secs(5),
            submit_timeout: Duration::from_secs(120),
            answer_timeout: Duration::from_secs(30),
            cancel_timeout: Duration::from_millis(900),
            probe_timeout: Duration::from_secs(5),
            rate_window: Duration::from_secs(10),
            rate_bytes_min: 100 * 1024,
            request_bytes_max: 64 << 20,
            answer_bytes_max: 1 << 20,
            result_bytes_max: 2 << 30,
            poll_every: Duration::from_secs(2),
            backoff_first: Duration::from_secs(1),
            backoff_max: Duration::from_mins(1),
            failures_max: 3,
            silence_max: Duration::from_mins(5),
            run_max: Duration::from_hours(2),
            result_attempts_max: 5,
            resubmits_max: 1,
        }
    }

    /// The servers with these base URLs, which are their names: tickets contain them, and they stay the same when
    /// the list changes.
    ///
    /// # Errors
    /// If a URL is that of no server or is named twice: one would be taken for two, and get twice its share.
    pub(crate) fn with_urls(urls: &[String]) -> Result<Self, KindError> {
        let mut seen = BTreeSet::new();
        for url in urls {
            if base_url(url).is_none() {
                return Err(not_a_server(url));
            }
            if !seen.insert(url.trim_end_matches('/')) {
                return Err(KindError("base_urls names a server twice".to_owned()));
            }
        }
        let named = urls.iter().map(|url| NamedServer {
            name: url.clone(),
            base_url: url.clone(),
        });
        Ok(Self::new(named.collect()))
    }
}

/// Parses the base URL of a server, without a trailing slash. `None` if it is not `http` or `https`, has
/// no host, or has a user, a query or a fragment.
pub(crate) fn base_url(text: &str) -> Option<Url> {
    let mut url = Url::parse(text).ok()?;
    let is_plain = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    if !is_plain {
        return None;
    }
    url.path_segments_mut().ok()?.pop_if_empty();
    Some(url)
}

/// An origin in its ASCII form; `None` if `text` is none.
pub(crate) fn origin(text: &str) -> Option<String> {
    let url = base_url(text)?;
    let is_bare = url.path() == "/" || url.path().is_empty();
    is_bare.then(|| url.origin().ascii_serialization())
}

pub(crate) fn not_a_server(url: &str) -> KindError {
    KindError(format!(
        "'{url}' is not the base URL of a server, such as http://host:8000"
    ))
}

/// The place of the key that `key_file` or `key_variable` names; empty ones name none.
pub(crate) fn key_source(file: &Path, variable: &str) -> Result<KeySource, KindError> {
    match (file.as_os_str().is_empty(), variable.is_empty()) {
        (true, true) => Ok(KeySource::None),
        (false, true) => Ok(KeySource::File(file.to_owned())),
        (true, false) => Ok(KeySource::Variable(variable.to_owned())),
        (false, false) => Err(KindError(
            "set key_file or key_variable, not both".to_owned(),
        )),
    }
}

/// Refuses settings of 0, which no run could use.
pub(crate) fn check_positive(settings: &[(&str, u32)]) -> Result<(), KindError> {
    match settings.iter().find(|(_, value)| *value == 0) {
        Some((name, _)) => Err(KindError(format!("{name} must be at least 1"))),
        None => Ok(()),
    }
}

/// The ticket of an earlier attempt, unless another kind of engine made it.
pub(crate) fn read_ticket<T: DeserializeOwned>(text: &str) -> Option<T> {
    let ticket = serde_json::from_str(text);
    if let Err(error) = &ticket {
        tracing::warn!(%error, "unreadable ticket of an earlier attempt; submitting again");
    }
    ticket.ok()
}

/// A value of a file, or a list of them.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "must be a text of the right form, or a list of them"
)]
pub(crate) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> From<OneOrMany<T>> for Vec<T> {
    fn from(given: OneOrMany<T>) -> Self {
        match given {
            OneOrMany::One(one) => vec![one],
            OneOrMany::Many(many) => many,
        }
    }
}

/// The default of a setting, beside its field.
pub(crate) const fn setting<const N: u32>() -> u32 {
    N
}

/// Reads references of a request, within a maximum size.
pub(crate) struct ReferenceReader {
    bytes_left: u64,
    bytes_max: u64,
}

impl ReferenceReader {
    pub(crate) const fn new(bytes_max: u64) -> Self {
        Self {
            bytes_left: bytes_max,
            bytes_max,
        }
    }

    pub(crate) async fn read(&mut self, file: &ReferenceFile) -> Result<Bytes, UpstreamError> {
        let metadata = tokio::fs::metadata(&file.path).await;
        let length = metadata.map_err(UpstreamError::Storage)?.len();
        self.bytes_left = self
            .bytes_left
            .checked_sub(length)
            .ok_or(UpstreamError::RequestTooLarge(self.bytes_max))?;
        let bytes = tokio::fs::read(&file.path).await;
        Ok(bytes.map_err(UpstreamError::Storage)?.into())
    }
}

/// Time of an engine's setting.
pub(crate) fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}

/// Time of an engine's setting.
pub(crate) fn milliseconds(milliseconds: u32) -> Duration {
    Duration::from_millis(milliseconds.into())
}

/// A run ends after `silence_seconds`. Its last call may take this much longer.
pub(crate) const LAST_CALL_MAX: Duration = Duration::from_mins(3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_place() {
        let place = |file: &str, variable| key_source(Path::new(file), variable);
        assert_eq!(place("", ""), Ok(KeySource::None));
        assert_eq!(place("k", ""), Ok(KeySource::File("k".into())));
        assert_eq!(place("", "K"), Ok(KeySource::Variable("K".into())));
        assert!(place("k", "K").is_err());
    }

    #[test]
    fn a_server_is_named_once_by_its_base_url() {
        let check = |urls: &[&str]| {
            let urls: Vec<String> = urls.iter().map(|&url| url.to_owned()).collect();
            ServerOptions::with_urls(&urls).map(|options| options.servers.len())
        };
        assert_eq!(check(&["http://a", "http://b"]), Ok(2));
        for wrong in [
            &["http://a", "http://a"],
            &["http://a", "http://a/"],
            &["http://a", "b"],
        ] {
            assert!(check(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_base_url_is_a_server_s_and_nothing_more() {
        assert_eq!(base_url("http://h:8000/v1/").unwrap().path(), "/v1");
        for wrong in [
            "",
            "h:8000",
            "ftp://h/v1",
            "http://u:p@h/v1",
            "http://h/v1?k=1",
            "file:///v1",
        ] {
            assert!(base_url(wrong).is_none(), "{wrong}");
        }
        assert_eq!(
            origin("https://B.example.com:443").unwrap(),
            "https://b.example.com"
        );
        assert!(origin("https://b.example.com/folder").is_none());
    }
}
