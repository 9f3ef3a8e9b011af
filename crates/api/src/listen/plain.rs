//! Refusals outside any request that hyper could answer: written by hand, in the envelope and with
//! the headers of every answer. They always close the connection.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::Refusal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::request_id::RequestId;
use crate::security::ALWAYS;

/// Maximum number of refused connections that linger; further ones are closed at once.
const LINGERING_MAX: usize = 64;
/// Maximum time that one lingers.
const LINGER_LIMIT: Duration = Duration::from_secs(2);
/// Maximum bytes read from one meanwhile.
const LINGER_BYTES_MAX: u64 = 64 * 1024;

/// The whole answer, from the status line (`503 Service Unavailable`) to the body.
pub(super) fn answer(
    status: &str,
    refusal: &Refusal,
    request_id: RequestId,
    retry_after_seconds: Option<u64>,
) -> Vec<u8> {
    let body = serde_json::to_string(&refusal.body()).unwrap_or_default();
    let mut text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nx-request-id: {request_id}\r\n\
         connection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in ALWAYS {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    if let Some(seconds) = retry_after_seconds {
        let _ = write!(text, "retry-after: {seconds}\r\n");
    }
    text.push_str("\r\n");
    text.push_str(&body);
    text.into_bytes()
}

/// Refused connections that are still being read from, so their clients receive the answer.
#[derive(Clone, Debug)]
pub(super) struct Lingering(Arc<Semaphore>);

impl Default for Lingering {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LINGERING_MAX)))
    }
}

impl Lingering {
    /// Sends `answer`, reads what the client sent, within bounds, and closes: closing with unread
    /// bytes would reset the connection and lose the answer.
    pub(super) fn refuse(&self, mut stream: TcpStream, answer: Vec<u8>) {
        let Ok(place) = self.0.clone().try_acquire_owned() else {
            return;
        };
        tokio::spawn(async move {
            let lingering = async {
                stream.write_all(&answer).await?;
                stream.shutdown().await?;
                let mut rest = stream.take(LINGER_BYTES_MAX);
                tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
            };
            // Whether or not the client received the answer, the connection ends here.
            let _ = tokio::time::timeout(LINGER_LIMIT, lingering).await;
            drop(place);
        });
    }
}
