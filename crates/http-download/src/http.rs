//! One request, with its redirects. Every answer must begin within a time limit. A redirect never
//! leads from https to http, and never takes the token to another origin.

use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, Request, Response, StatusCode};
use kinora_http::{
    ClientOptions, ExchangeError, HttpClient, TrustedRoots, innermost, redirect_target,
};
use url::Url;

use crate::error::DownloadError;
use crate::token::OriginToken;

/// A publisher's host, its storage, and some in between.
const REDIRECTS_MAX: usize = 10;
/// Maximum size of a response head, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const USER_AGENT_TEXT: &str = concat!("kinora/", env!("CARGO_PKG_VERSION"));

/// Connections to servers.
#[derive(Debug)]
pub(crate) struct DownloadClient {
    client: HttpClient,
    limit: Duration,
    token: Option<OriginToken>,
}

impl DownloadClient {
    pub(crate) fn new(
        limit: Duration,
        token: Option<OriginToken>,
        roots_pem: &[u8],
    ) -> Result<Self, DownloadError> {
        let extra = Some(roots_pem).filter(|pem| !pem.is_empty());
        let roots = TrustedRoots::public().with_pem(extra);
        let tls = roots
            .and_then(TrustedRoots::client_config)
            .map_err(|error| {
                DownloadError::Options(format!("the root certificates cannot be used: {error}"))
            })?;
        let options = ClientOptions {
            connect_timeout: Some(limit),
            // A download takes longer than a server keeps idle connections.
            idle_max: 0,
            ..ClientOptions::default()
        };
        let client = HttpClient::new(tls, options.with_head(HEAD_BYTES_MAX), None);
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
    ) -> Result<(Response<Incoming>, String), DownloadError> {
        let (mut at, mut has_left) = (url.clone(), false);
        for _ in 0..=REDIRECTS_MAX {
            has_left |= at.origin() != url.origin();
            let token = self.token.as_ref().filter(|_| !has_left);
            let token = token.and_then(|token| token.header_for(&at));
            let response = self.send(&at, headers, token).await?;
            if !is_redirect(response.status()) {
                return Ok((response, at.origin().ascii_serialization()));
            }
            at = redirect_target(&at, response.headers()).ok_or_else(|| {
                DownloadError::Answer("it redirects to no https address".to_owned())
            })?;
        }
        Err(DownloadError::Answer(format!(
            "it redirects more than {REDIRECTS_MAX} times"
        )))
    }

    async fn send(
        &self,
        url: &Url,
        headers: &HeaderMap,
        token: Option<&HeaderValue>,
    ) -> Result<Response<Incoming>, DownloadError> {
        let origin = url.origin().ascii_serialization();
        let mut request = Request::new(Bytes::new());
        let uri = url.as_str().parse();
        *request.uri_mut() = uri
            .map_err(|_| DownloadError::Answer(format!("{origin} is no address to connect to")))?;
        let fields = request.headers_mut();
        fields.clone_from(headers);
        fields.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_TEXT));
        // Lengths and ranges must be those of the file.
        fields.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(token) = token {
            fields.insert(AUTHORIZATION, token.clone());
        }
        let opened = self.client.open(request, self.limit).await;
        opened.map_err(|error| match error {
            ExchangeError::Connect(error) => DownloadError::Connect {
                origin,
                source: innermost(&*error).to_string().into(),
            },
            other => other.into(),
        })
    }
}

impl From<ExchangeError> for DownloadError {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::Timeout(limit) => Self::Stalled(limit),
            ExchangeError::TooLarge(max) => Self::Answer(format!("it is larger than {max} bytes")),
            ExchangeError::Broken(error) | ExchangeError::Connect(error) => {
                Self::Broken(innermost(&*error).to_string().into())
            }
        }
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}
