//! The request identifier: sent as `x-request-id`, and part of every log line written while the
//! request is handled.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::HeaderValue;
use kinora_contract::hex;

const PREFIX: &[u8; 4] = b"req_";
const RANDOM_BYTES: usize = 6;
/// Minimum number of digits of the number.
const NUMBER_DIGITS_MIN: usize = 8;
const CHARS_MAX: usize = PREFIX.len() + 2 * RANDOM_BYTES + 16;

tokio::task_local! {
    /// The request that the current async task handles.
    static CURRENT: RequestId;
}

/// A request's identifier: `req_`, random digits of the process, and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    random: [u8; RANDOM_BYTES],
    number: u64,
}

/// Numbers the requests of a process. Clones share the counter.
#[derive(Clone, Debug)]
pub(crate) struct RequestIds {
    random: [u8; RANDOM_BYTES],
    next: Arc<AtomicU64>,
}

impl RequestIds {
    pub(crate) fn new(random: [u8; RANDOM_BYTES]) -> Self {
        Self {
            random,
            next: Arc::default(),
        }
    }

    pub(crate) fn next(&self) -> RequestId {
        RequestId {
            random: self.random,
            number: self.next.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl RequestId {
    /// The request that the calling task handles, if any: for log lines.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|id| *id).ok()
    }

    /// Runs `work` as part of this request.
    pub(crate) fn scope<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, work)
    }

    /// Runs `work` on this thread as part of this request.
    pub(crate) fn scope_sync<T>(self, work: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self, work)
    }

    /// Makes `work`, to be spawned as an async task, part of the current request, if there is one.
    pub(crate) fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
        let id = Self::current();
        async move {
            match id {
                Some(id) => id.scope(work).await,
                None => work.await,
            }
        }
    }

    /// Makes `work`, to be run on another thread, part of the current request, if there is one.
    pub(crate) fn inherited<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
        let id = Self::current();
        move || match id {
            Some(id) => id.scope_sync(work),
            None => work(),
        }
    }

    /// The value of `x-request-id`.
    pub(crate) fn header(self) -> HeaderValue {
        let (text, length) = self.digits();
        // Letters, digits and an underscore are always a valid header value.
        HeaderValue::from_bytes(&text[..length]).unwrap_or(HeaderValue::from_static(""))
    }

    fn digits(self) -> ([u8; CHARS_MAX], usize) {
        let mut text = [0; CHARS_MAX];
        let mut length = PREFIX.len();
        text[..length].copy_from_slice(PREFIX);
        let number = self.number.to_be_bytes();
        // The number grows with the requests of the process: eight digits, and more only when they
        // are used up.
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        let number = &number[zeros.min(number.len() - NUMBER_DIGITS_MIN / 2)..];
        for byte in self.random.iter().chain(number) {
            text[length..length + 2].copy_from_slice(&hex::pair(*byte));
            length += 2;
        }
        (text, length)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, length) = self.digits();
        f.write_str(&String::from_utf8_lossy(&text[..length]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_same_in_the_header_and_in_the_log() {
        let ids = RequestIds::new([0xab, 0, 1, 2, 3, 0xff]);
        let clone = ids.clone();
        assert_eq!(ids.next().to_string(), "req_ab00010203ff00000000");
        assert_eq!(clone.next().header(), "req_ab00010203ff00000001");
        for (number, digits) in [(0x1234, "00001234"), (0x1_2345_6789, "0123456789")] {
            let id = RequestId {
                random: [0; 6],
                number,
            };
            assert_eq!(id.to_string(), format!("req_000000000000{digits}"));
            assert_eq!(id.header(), id.to_string());
        }
        let last = RequestId {
            random: [0xff; 6],
            number: u64::MAX,
        };
        assert_eq!(last.to_string().len(), CHARS_MAX);
    }

    #[tokio::test]
    async fn an_id_is_known_while_its_request_is_answered() {
        let id = RequestIds::new([7; 6]).next();
        assert_eq!(RequestId::current(), None);
        id.scope(async {
            tokio::task::yield_now().await;
            assert_eq!(RequestId::current(), Some(id));
        })
        .await;
        assert_eq!(RequestId::current(), None);
        let carried = id.scope_sync(|| RequestId::carried(async { RequestId::current() }));
        assert_eq!(carried.await, Some(id));
        let alone = RequestId::carried(async { RequestId::current() });
        assert_eq!(alone.await, None);
        let on_a_thread = id.scope_sync(|| RequestId::inherited(RequestId::current));
        assert_eq!(on_a_thread(), Some(id));
        assert_eq!(RequestId::inherited(RequestId::current)(), None);
    }
}
