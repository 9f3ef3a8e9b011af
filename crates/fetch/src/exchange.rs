//! One request over one connection, and what its answer's head says: the body, another place, or
//! nothing of use. It sends four fixed headers, nothing of anybody's, and never the same
//! connection twice.

use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, HOST, HeaderName, LOCATION, TRANSFER_ENCODING,
    USER_AGENT,
};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;
use url::{Position, Url};

use crate::connect::Connection;
use crate::error::{Cause, FetchError};

/// The bound of a response head, of a chunk's head and of trailers, in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;
const USER_AGENT_TEXT: &str = concat!("kinora/", env!("CARGO_PKG_VERSION"));

/// A response whose head was read.
#[derive(Debug)]
pub(crate) struct Answer {
    response: Response<Incoming>,
    /// Moves the bytes and holds the turns; ends with this value, so that a fetch given up closes
    /// its connection.
    driver: JoinSet<()>,
}

/// What the head of a response leads to.
#[derive(Debug)]
pub(crate) enum Head {
    /// The body is the file.
    Body(Incoming, JoinSet<()>),
    /// Ask here instead, after judging it.
    Elsewhere(Url),
}

/// Asks for `url` over `connection` and reads the head of the answer. The caller bounds the time.
///
/// # Errors
/// When the peer does not answer in HTTP/1.1, or with a head of more than [`HEAD_BYTES_MAX`].
pub(crate) async fn ask(url: &Url, connection: Connection) -> Result<Answer, Cause> {
    let request = request(url).map_err(Cause::RequestLine)?;
    let Connection { stream, turns } = connection;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(Cause::Http)?;
    let mut driver = JoinSet::new();
    let driven = (connection, turns);
    driver.spawn(async move {
        // An aborted task is dropped a moment later. Only then is the connection closed, and its
        // turns are the next ones'.
        let (connection, _turns) = driven;
        // What goes wrong here is also told to whoever reads the response.
        let _ = connection.await;
    });
    let response = sender.send_request(request).await.map_err(Cause::Http)?;
    Ok(Answer { response, driver })
}

fn request(url: &Url) -> Result<Request<Empty<Bytes>>, hyper::http::Error> {
    Request::get(&url[Position::BeforePath..Position::AfterQuery])
        .header(HOST, &url[Position::BeforeHost..Position::AfterPort])
        .header(USER_AGENT, USER_AGENT_TEXT)
        .header(ACCEPT, "*/*")
        .header(ACCEPT_ENCODING, "identity")
        .body(Empty::new())
}

impl Answer {
    /// What follows from status and headers; `asked` is the URL that this answers.
    ///
    /// # Errors
    /// For every other status, a redirect to nowhere or from https to http, and a body in any
    /// encoding.
    pub(crate) fn head(self, asked: &Url) -> Result<Head, FetchError> {
        let headers = self.response.headers();
        match self.response.status() {
            StatusCode::OK => {}
            StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT => {
                // Browsers, and so servers, take UTF-8 here, although the standard says ASCII.
                let location = headers.get(LOCATION);
                let location = location.and_then(|text| str::from_utf8(text.as_bytes()).ok());
                let location = location.ok_or(FetchError::Unreachable(Cause::Location))?;
                let next = asked.join(location);
                let next = next.map_err(|error| FetchError::Unreachable(Cause::Url(error)))?;
                // What was asked for in secret is not asked for in the clear.
                if (asked.scheme(), next.scheme()) == ("https", "http") {
                    return Err(FetchError::Unreachable(Cause::Downgrade));
                }
                return Ok(Head::Elsewhere(next));
            }
            other => return Err(FetchError::Unreachable(Cause::Status(other.as_u16()))),
        }
        self.plain(CONTENT_ENCODING, "identity")?;
        self.plain(TRANSFER_ENCODING, "chunked")?;
        Ok(Head::Body(self.response.into_body(), self.driver))
    }

    /// Refuses the answer when header `name` says anything but `only`.
    fn plain(&self, name: HeaderName, only: &str) -> Result<(), FetchError> {
        for value in self.response.headers().get_all(name) {
            if !value.as_bytes().eq_ignore_ascii_case(only.as_bytes()) {
                let shown = String::from_utf8_lossy(value.as_bytes()).into_owned();
                return Err(FetchError::Unreachable(Cause::Encoding(shown)));
            }
        }
        Ok(())
    }
}
