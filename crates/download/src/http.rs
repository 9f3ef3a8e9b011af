//! One request, with its redirects. Every answer must begin within a time limit. A redirect never
//! leads from https to http, and never takes the token to another origin.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderValue, LOCATION, USER_AGENT};
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, crypto};
use url::Url;

use crate::error::Error;
use crate::token::Token;

/// A publisher's host, its storage, and some in between.
const REDIRECTS_MAX: usize = 10;
/// Maximum size of a response head, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of header lines: as many of 8 bytes, such as `a: bcd`, as a head has room for.
const HEADERS_MAX: usize = HEAD_BYTES_MAX / 8;
const USER_AGENT_TEXT: &str = concat!("kinora/", env!("CARGO_PKG_VERSION"));

/// Connections to servers.
#[derive(Debug)]
pub(crate) struct Http {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    limit: Duration,
    token: Option<Token>,
}

impl Http {
    pub(crate) fn new(
        limit: Duration,
        token: Option<Token>,
        roots_pem: &[u8],
    ) -> Result<Self, Error> {
        let mut plain = HttpConnector::new();
        plain.set_connect_timeout(Some(limit));
        plain.set_nodelay(true);
        plain.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(roots_pem)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(plain);
        let client = Client::builder(TokioExecutor::new())
            // A download takes longer than a server keeps idle connections.
            .pool_max_idle_per_host(0)
            .http1_max_buf_size(HEAD_BYTES_MAX)
            .http1_max_headers(HEADERS_MAX)
            .build(connector);
        Ok(Self {
            client,
            limit,
            token,
        })
    }

    /// The answer with `url`'s file, wherever redirects lead, and the origin that gave it. Its
    /// status may be any but a redirect's; its body is unread.
    pub(crate) async fn get(
        &self,
        url: &Url,
        headers: &HeaderMap,
    ) -> Result<(Response<Incoming>, String), Error> {
        let (mut at, mut has_left) = (url.clone(), false);
        for _ in 0..=REDIRECTS_MAX {
            has_left |= at.origin() != url.origin();
            let token = self.token.as_ref().filter(|_| !has_left);
            let token = token.and_then(|token| token.header_for(&at));
            let response = self.send(&at, headers, token).await?;
            if !is_redirect(response.status()) {
                return Ok((response, at.origin().ascii_serialization()));
            }
            at = redirected(&at, response.headers())?;
        }
        Err(Error::Answer(format!(
            "it redirects more than {REDIRECTS_MAX} times"
        )))
    }

    async fn send(
        &self,
        url: &Url,
        headers: &HeaderMap,
        token: Option<&HeaderValue>,
    ) -> Result<Response<Incoming>, Error> {
        let origin = url.origin().ascii_serialization();
        let mut request = Request::new(Empty::new());
        let uri = url.as_str().parse();
        *request.uri_mut() =
            uri.map_err(|_| Error::Answer(format!("{origin} is no address to connect to")))?;
        let fields = request.headers_mut();
        fields.clone_from(headers);
        fields.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_TEXT));
        // Lengths and ranges must be those of the file.
        fields.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(token) = token {
            fields.insert(AUTHORIZATION, token.clone());
        }
        let sent = tokio::time::timeout(self.limit, self.client.request(request)).await;
        let sent = sent.map_err(|_| Error::Stalled(self.limit))?;
        sent.map_err(|error| {
            if error.is_connect() {
                Error::Connect {
                    origin,
                    source: innermost(error.into()),
                }
            } else {
                Error::Broken(innermost(error.into()))
            }
        })
    }
}

/// The innermost cause: "connection refused" says more than "client error (Connect)".
pub(crate) fn innermost(error: Box<dyn StdError + Send + Sync>) -> Box<dyn StdError + Send + Sync> {
    let mut deepest: &dyn StdError = &*error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string().into()
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The target of a redirect: http or https, but not from https to http.
fn redirected(from: &Url, headers: &HeaderMap) -> Result<Url, Error> {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let url = location.and_then(|location| from.join(location).ok());
    let url = url.filter(|url| match url.scheme() {
        "https" => true,
        scheme => scheme == "http" && from.scheme() == "http",
    });
    url.ok_or_else(|| Error::Answer("it redirects to no https address".to_owned()))
}

/// TLS 1.2 and 1.3 with the public roots and those of `roots_pem`.
fn tls(roots_pem: &[u8]) -> Result<ClientConfig, Error> {
    let unusable = |error: &dyn std::fmt::Display| {
        Error::Options(format!("the root certificates cannot be used: {error}"))
    };
    let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    for certificate in CertificateDer::pem_slice_iter(roots_pem) {
        let certificate = certificate.map_err(|error| unusable(&error))?;
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_never_leaves_https() {
        let to = |from: &str, location: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, HeaderValue::from_static(location));
            let to = redirected(&Url::parse(from).unwrap(), &headers);
            to.ok().map(String::from)
        };
        assert_eq!(to("http://a/b", "/c").as_deref(), Some("http://a/c"));
        assert!(to("http://a/b", "https://c/d").is_some());
        assert!(to("https://a/b", "https://c/d").is_some());
        for refused in ["http://c/d", "file:///etc/passwd", "https://"] {
            assert_eq!(to("https://a/b", refused), None, "{refused}");
        }
        let nowhere = redirected(&Url::parse("http://a").unwrap(), &HeaderMap::new());
        assert!(nowhere.is_err());
    }
}
