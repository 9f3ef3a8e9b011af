//! One server: its base URL, its key, its headers, and calls to it. Key and headers are sent only to its
//! own origin.

use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use hyper::{HeaderMap, Method, Request, Response};
use url::Url;

use crate::cause::Cause;
use crate::http::{Http, Reply};
use crate::key::Key;

const USER_AGENT_TEXT: &str = concat!("kinora/", env!("CARGO_PKG_VERSION"));

/// A configured server.
#[derive(Debug)]
pub struct Upstream {
    /// Its name in tickets and logs.
    pub name: String,
    /// Its base URL, of [`base_url`].
    pub base: Url,
    /// Its key.
    pub key: Key,
    /// Further headers of every call.
    pub headers: HeaderMap,
    /// The client to call it with.
    pub http: Http,
}

/// A body that can be sent repeatedly.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The value of `content-type`.
    pub content_type: String,
    /// The whole body.
    pub body: Bytes,
}

/// One call to an upstream.
pub struct Call<'a> {
    /// The method.
    pub method: Method,
    /// The whole URL.
    pub url: Url,
    /// The body; `None` is an empty one.
    pub body: Option<&'a Encoded>,
    /// Headers of this call alone.
    pub headers: &'a [(&'static str, &'a str)],
    /// Maximum time for the answer.
    pub limit: Duration,
}

impl Upstream {
    /// The base URL followed by `segments`, each escaped as one segment.
    pub fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        // `base_url` refuses URLs without segments.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// Resolves a URL from an answer, which may be relative.
    ///
    /// # Errors
    /// [`Cause::Url`] if it is none.
    pub fn join(&self, address: &str) -> Result<Url, Cause> {
        Ok(self.base.join(address)?)
    }

    /// Whether `url` has this server's origin.
    pub fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    /// Makes the call; repeats it if the key was rejected and has changed in the meantime.
    ///
    /// # Errors
    /// [`Cause`] without a complete answer. Any status is an answer.
    pub async fn call(&self, call: &Call<'_>) -> Result<Reply, Cause> {
        let reply = self.http.exchange(self.request(call)?, call.limit).await?;
        if reply.status != 401 || !self.key.reload() {
            return Ok(reply);
        }
        self.http.exchange(self.request(call)?, call.limit).await
    }

    /// Makes the call, and leaves the body of the answer unread.
    ///
    /// # Errors
    /// [`Cause`] without a head in time.
    pub async fn open(&self, call: &Call<'_>) -> Result<Response<Incoming>, Cause> {
        let response = self.http.open(self.request(call)?, call.limit).await?;
        if response.status().as_u16() != 401 || !self.key.reload() {
            return Ok(response);
        }
        self.http.open(self.request(call)?, call.limit).await
    }

    fn request(&self, call: &Call<'_>) -> Result<Request<Bytes>, Cause> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(call.url.as_str())
            .header(USER_AGENT, USER_AGENT_TEXT)
            .header(ACCEPT, "*/*")
            .header(ACCEPT_ENCODING, "identity");
        if self.is_own(&call.url) {
            if let Some(key) = self.key.header() {
                request = request.header(AUTHORIZATION, key);
            }
            for (name, value) in &self.headers {
                request = request.header(name, value);
            }
        }
        for (name, value) in call.headers {
            request = request.header(*name, *value);
        }
        let body = match call.body {
            Some(encoded) => {
                request = request.header(CONTENT_TYPE, &encoded.content_type);
                encoded.body.clone()
            }
            None => Bytes::new(),
        };
        let request = request.body(body);
        request.map_err(|error| Cause::Connect(error.into()))
    }
}

/// Parses the base URL of a server, without a trailing slash. `None` if it is not `http` or `https`, has
/// no host, or has a user, a query or a fragment.
pub fn base_url(text: &str) -> Option<Url> {
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
pub fn origin(text: &str) -> Option<String> {
    let url = base_url(text)?;
    let is_bare = url.path() == "/" || url.path().is_empty();
    is_bare.then(|| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

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
