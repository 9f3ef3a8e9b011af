//! One request over one connection, and the head of its response: a body, a redirect or an error.
//! A fetch sends four fixed headers and nothing about users; a connection is never reused.

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, HOST, LOCATION, TRANSFER_ENCODING, USER_AGENT};
use hyper::http::request;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use kinora_http::retry_after;
use tokio::task::JoinSet;
use url::{Position, Url};

use crate::coding::ContentCoding;
use crate::connect::CountedConnection;
use crate::error::{FetchCause, FetchError};

/// Maximum size of a response head, a chunk head or trailers, in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Maximum number of header lines: as many of 8 bytes, such as `a: bcd`, as a head has room for.
const HEADERS_MAX: usize = HEAD_BYTES_MAX / 8;
const USER_AGENT_TEXT: &str = concat!("kinora/", env!("CARGO_PKG_VERSION"));

/// A response after its head was read.
#[derive(Debug)]
pub(crate) struct HostAnswer {
    response: Response<Incoming>,
    /// Drives the connection and holds its turns; dropping it closes the connection, so an
    /// abandoned fetch frees its turns.
    driver: JoinSet<()>,
}

/// The outcome of a response head.
#[derive(Debug)]
pub(crate) enum HeadOutcome {
    /// The body is the requested file, in this coding.
    Body(Incoming, ContentCoding, JoinSet<()>),
    /// A redirect; the caller must check its URL first.
    Elsewhere(Url),
}

/// A request that may not have been possible to form.
type RequestResult = Result<Request<Full<Bytes>>, hyper::http::Error>;

/// Sends `request` over `connection` and reads the response head. The caller limits the time.
///
/// # Errors
/// If the peer does not answer in HTTP/1.1, or sends a head larger than [`HEAD_BYTES_MAX`].
pub(crate) async fn ask(
    request: RequestResult,
    connection: CountedConnection,
) -> Result<HostAnswer, FetchCause> {
    let request = request.map_err(FetchCause::RequestLine)?;
    let CountedConnection { stream, turns } = connection;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .allow_obsolete_multiline_headers_in_responses(true)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(FetchCause::Http)?;
    let mut driver = JoinSet::new();
    let driven = (connection, turns);
    driver.spawn(async move {
        // An aborted task is dropped a moment later; only then is the connection closed, and its
        // turns are free.
        let (connection, _turns) = driven;
        // The reader of the response sees the same error.
        let _ = connection.await;
    });
    let response = sender
        .send_request(request)
        .await
        .map_err(FetchCause::Http)?;
    Ok(HostAnswer { response, driver })
}

/// Asks for the file at `url`.
pub(crate) fn get(url: &Url) -> RequestResult {
    let request = Request::get(target(url));
    with_usual_headers(request, url).body(Full::default())
}

/// Sends `body` to `url`, with `headers` besides the usual ones.
pub(crate) fn post(url: &Url, headers: &[(&str, &str)], body: Bytes) -> RequestResult {
    let mut request = with_usual_headers(Request::post(target(url)), url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(body))
}

fn target(url: &Url) -> &str {
    &url[Position::BeforePath..Position::AfterQuery]
}

fn with_usual_headers(request: request::Builder, url: &Url) -> request::Builder {
    request
        .header(HOST, &url[Position::BeforeHost..Position::AfterPort])
        .header(USER_AGENT, USER_AGENT_TEXT)
        .header(ACCEPT, "*/*")
        .header(ACCEPT_ENCODING, "identity")
}

impl HostAnswer {
    /// Its status.
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Interprets status and headers; `asked` is the requested URL.
    ///
    /// # Errors
    /// For any other status, a redirect without a location or from https to http, and an encoded
    /// transfer.
    pub(crate) fn head(self, asked: &Url) -> Result<HeadOutcome, FetchError> {
        let headers = self.response.headers();
        match self.response.status() {
            StatusCode::OK => {}
            StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT => {
                // Browsers, and therefore servers, use UTF-8 here, although the standard says
                // ASCII.
                let location = headers.get(LOCATION);
                let location = location.and_then(|text| str::from_utf8(text.as_bytes()).ok());
                let location = location.ok_or(FetchError::Unreachable(FetchCause::Location))?;
                let next = asked.join(location);
                let next = next.map_err(|error| FetchError::Unreachable(FetchCause::Url(error)))?;
                // A URL requested over https must not be requested in the clear.
                if (asked.scheme(), next.scheme()) == ("https", "http") {
                    return Err(FetchError::Unreachable(FetchCause::Downgrade));
                }
                return Ok(HeadOutcome::Elsewhere(next));
            }
            other => {
                return Err(FetchError::Unreachable(FetchCause::Status {
                    status: other.as_u16(),
                    retry_after: retry_after(headers),
                }));
            }
        }
        for value in headers.get_all(TRANSFER_ENCODING) {
            if !value.as_bytes().eq_ignore_ascii_case(b"chunked") {
                return Err(FetchError::Unreachable(FetchCause::Encoding(None)));
            }
        }
        let coding = ContentCoding::of(headers);
        Ok(HeadOutcome::Body(
            self.response.into_body(),
            coding,
            self.driver,
        ))
    }
}
