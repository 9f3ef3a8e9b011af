//! One upstream: its URLs, its key, and calls to it. The key is sent only to the upstream's own
//! origin.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use hyper::{Method, Request, Response};
use url::Url;

use crate::encode::Encoded;
use crate::error::Cause;
use crate::http::{Http, Reply};
use crate::key::Key;
use crate::options::{OptionsError, UpstreamOptions, base_url};

const USER_AGENT_TEXT: &str = concat!("kinora/", env!("CARGO_PKG_VERSION"));

/// A configured server.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    base: Url,
    key: Key,
    http: Http,
}

/// One call to an upstream.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) body: Option<&'a Encoded>,
    pub(crate) header: Option<(&'static str, &'a str)>,
    pub(crate) limit: Duration,
}

impl Upstream {
    pub(crate) fn new(options: &UpstreamOptions, http: Http) -> Result<Self, OptionsError> {
        let key = Key::open(options.key.clone()).map_err(|source| OptionsError::Key {
            name: options.name.clone(),
            source,
        })?;
        Ok(Self {
            name: options.name.clone(),
            base: base_url(&options.base_url)?,
            key,
            http,
        })
    }

    /// `{base}/videos` followed by `segments`, each escaped as one segment.
    pub(crate) fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        // Configuration refuses base URLs without segments.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("videos").extend(segments);
        }
        url
    }

    /// Resolves a URL from an answer, which may be relative.
    pub(crate) fn join(&self, address: &str) -> Result<Url, Cause> {
        Ok(self.base.join(address)?)
    }

    pub(crate) fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    /// Makes the call; repeats it if the key was rejected and has changed in the meantime.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Reply, Cause> {
        let reply = self.http.exchange(self.request(call)?, call.limit).await?;
        if reply.status != 401 || !self.key.reload() {
            return Ok(reply);
        }
        self.http.exchange(self.request(call)?, call.limit).await
    }

    /// Makes the call, and leaves the body of the answer unread.
    pub(crate) async fn open(&self, call: &Call<'_>) -> Result<Response<Incoming>, Cause> {
        let response = self.http.open(self.request(call)?, call.limit).await?;
        if response.status().as_u16() != 401 || !self.key.reload() {
            return Ok(response);
        }
        self.http.open(self.request(call)?, call.limit).await
    }

    fn request(&self, call: &Call<'_>) -> Result<Request<Full<Bytes>>, Cause> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(call.url.as_str())
            .header(USER_AGENT, USER_AGENT_TEXT)
            .header(ACCEPT, "*/*")
            .header(ACCEPT_ENCODING, "identity");
        if let Some(key) = self.key.header().filter(|_| self.is_own(&call.url)) {
            request = request.header(AUTHORIZATION, key);
        }
        if let Some((name, value)) = call.header {
            request = request.header(name, value);
        }
        let body = match call.body {
            Some(encoded) => {
                request = request.header(CONTENT_TYPE, &encoded.content_type);
                encoded.body.clone()
            }
            None => Bytes::new(),
        };
        let request = request.body(Full::new(body));
        request.map_err(|error| Cause::Connect(error.into()))
    }
}
