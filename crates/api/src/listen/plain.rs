//! Refusals outside of any request that hyper could answer: written by hand, in the envelope and
//! with the headers that every answer has. They always end the connection.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::Refusal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::request_id::RequestId;
use crate::security::ALWAYS;

/// Refused connections that are seen off at a time; further ones are just closed.
const PARTINGS_MAX: usize = 64;
/// How long one is seen off.
const PARTING_LIMIT: Duration = Duration::from_secs(2);
/// What is read of its request meanwhile.
const PARTING_BYTES_MAX: u64 = 64 * 1024;

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

/// Sees refused connections off.
#[derive(Clone, Debug)]
pub(super) struct Partings(Arc<Semaphore>);

impl Default for Partings {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(PARTINGS_MAX)))
    }
}

impl Partings {
    /// Sends `answer` and closes. What the client sent is read, within bounds: closing over it
    /// would make the system withdraw the answer as well.
    pub(super) fn refuse(&self, mut stream: TcpStream, answer: Vec<u8>) {
        let Ok(place) = self.0.clone().try_acquire_owned() else {
            return;
        };
        tokio::spawn(async move {
            let parting = async {
                stream.write_all(&answer).await?;
                stream.shutdown().await?;
                let mut rest = stream.take(PARTING_BYTES_MAX);
                tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
            };
            // Whether the client heard it or not: it is over.
            let _ = tokio::time::timeout(PARTING_LIMIT, parting).await;
            drop(place);
        });
    }
}
