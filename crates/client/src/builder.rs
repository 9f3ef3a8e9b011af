//! Builds a client: the URL of the service, the key, time limits and certificates.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;
use url::Url;

use crate::client::{Client, ClientInner};
use crate::error::Error;
use crate::http::ServiceConnections;

const RETRIES: u32 = 3;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const OUTAGE_MAX: Duration = Duration::from_secs(120);

/// Options of a [`Client`].
#[derive(Clone)]
#[must_use]
pub struct Builder {
    base_url: String,
    key: Option<String>,
    retries: u32,
    request_timeout: Duration,
    outage_max: Duration,
    roots_pem: Vec<u8>,
}

// Manual, so that the key is not shown.
impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client of the service at `base_url` (`http://127.0.0.1:8080`, with or without `/v1`), with
    /// the default options.
    pub fn new(base_url: &str, api_key: impl Into<String>) -> Result<Self, Error> {
        Self::builder(base_url).api_key(api_key).build()
    }

    /// A client with custom options.
    pub fn builder(base_url: &str) -> Builder {
        Builder {
            base_url: base_url.to_owned(),
            key: None,
            retries: RETRIES,
            request_timeout: REQUEST_TIMEOUT,
            outage_max: OUTAGE_MAX,
            roots_pem: Vec::new(),
        }
    }
}

impl Builder {
    /// The API key.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// How often a call is repeated after a transient failure; 3 by default.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// The time limit of one answer, without its retries; 60 s by default. In a download it applies
    /// to the head of the answer and to each piece of the body.
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.request_timeout = limit;
        self
    }

    /// How long to wait for a task while the service does not answer; 2 minutes by default, enough
    /// for a restart.
    pub fn outage_max(mut self, limit: Duration) -> Self {
        self.outage_max = limit;
        self
    }

    /// Additional trusted certificates in PEM, for a private certificate authority.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots_pem = pem.into();
        self
    }

    /// Builds the client, without connecting yet. Fails with [`Error::Options`] if the URL is not
    /// http or https, the key contains invalid characters, or the certificates cannot be read.
    pub fn build(self) -> Result<Client, Error> {
        let base = base(&self.base_url)?;
        let authorization = self.key.as_deref().map(authorization).transpose()?;
        let http = ServiceConnections::new(CONNECT_TIMEOUT, self.request_timeout, &self.roots_pem)?;
        Ok(Client(Arc::new(ClientInner {
            http,
            base,
            authorization,
            retries: self.retries,
            outage_max: self.outage_max,
        })))
    }
}

/// The root of the API, `.../v1`; the URL may come with or without `/v1`.
fn base(text: &str) -> Result<Url, Error> {
    let refused = |why: &str| Error::Options(format!("'{text}' {why}"));
    let mut url = Url::parse(text.trim())
        .map_err(|_| refused("is not a URL such as http://127.0.0.1:8080"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("is neither http nor https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("has a user name; the API key is given separately"));
    }
    url.set_query(None);
    url.set_fragment(None);
    let has_version = url.path().trim_end_matches('/').ends_with("/v1");
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty();
        if !has_version {
            path.push("v1");
        }
    }
    Ok(url)
}

fn authorization(key: &str) -> Result<HeaderValue, Error> {
    let value = HeaderValue::from_str(&format!("Bearer {}", key.trim()));
    let mut value =
        value.map_err(|_| Error::Options("the API key contains invalid characters".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_with_and_without_its_version() {
        for (given, expected) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1"),
            ("https://x.example/v1", "https://x.example/v1"),
            ("https://x.example/v1/", "https://x.example/v1"),
            ("https://x.example/video?a=b", "https://x.example/video/v1"),
        ] {
            assert_eq!(base(given).unwrap().as_str(), expected);
        }
        for wrong in ["", "127.0.0.1:8080", "ftp://x", "http://me:pw@x"] {
            assert!(base(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_key_is_never_shown() {
        let builder = Client::builder("http://x").api_key("kinora_secret");
        assert!(!format!("{builder:?}").contains("secret"));
        let client = builder.build().unwrap();
        assert!(!format!("{client:?}").contains("secret"));
        assert!(Client::builder("http://x").api_key("a\nb").build().is_err());
    }
}
