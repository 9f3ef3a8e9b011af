//! What the log says of requests. A fault that should not happen is an `ERROR` line, any other answer
//! a `DEBUG` line. While storage is away, each request that needs it fails: the log says so when that
//! begins and when it is over, not for each request.

use std::net::IpAddr;

use axum::http::{Method, StatusCode};
use kinora_store::Outage;

use crate::error::Fault;
use crate::request_id::RequestId;

/// Answers under this path come from storage.
const STORED: &str = "/v1/videos";

/// Writes the log of a listener's requests.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Apart, since a full disk refuses writes alone.
    reads: Outage,
    writes: Outage,
    /// Memory for connections.
    room: Outage,
}

/// A request, as far as the log names it.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) id: RequestId,
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) client: IpAddr,
}

impl Default for Journal {
    fn default() -> Self {
        Self {
            reads: Outage::of("reads for requests"),
            writes: Outage::of("writes for requests"),
            room: Outage::of("memory for requests"),
        }
    }
}

impl Journal {
    /// Notes the answer to a request.
    pub(crate) fn note(&self, asked: &Asked<'_>, status: StatusCode, fault: Option<Fault>) {
        // Also what the store logs of an outage names the request that met it first.
        asked
            .id
            .scope_sync(|| self.note_within(asked, status, fault));
    }

    fn note_within(&self, asked: &Asked<'_>, status: StatusCode, fault: Option<Fault>) {
        let Asked {
            method,
            path,
            client,
            ..
        } = asked;
        let is_success = status.is_success() && fault.is_none();
        let status = status.as_u16();
        let storage = if method.is_safe() {
            &self.reads
        } else {
            &self.writes
        };
        match fault {
            Some(Fault::Internal(cause)) => {
                tracing::error!(cause, %method, path, %client, status, "internal error");
                return;
            }
            Some(Fault::Storage(cause)) => storage.note_failure(&cause),
            Some(Fault::Overload) => self.room.note_failure(&"memory for connections used up"),
            None => {}
        }
        tracing::debug!(%method, path, %client, status, "answered");
        if is_success && path.starts_with(STORED) {
            storage.note_success();
            self.room.note_success();
        }
    }
}
