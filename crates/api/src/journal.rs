//! The log of requests. An internal error is an `ERROR` line, any other answer a `DEBUG` line.
//! While storage is unavailable every request that needs it fails, so the log reports the start and
//! the end of an outage, not each request.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{Method, StatusCode};
use kinora_contract::Clock;
use kinora_store::Outage;

use crate::error::Fault;
use crate::request_id::RequestId;

/// Answers under this path need storage.
const STORED: &str = "/v1/videos";

/// Logs the requests of a listener.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Separate from writes, since a full disk fails only writes.
    reads: Outage,
    writes: Outage,
    /// The memory for connections.
    room: Outage,
}

/// The parts of a request that the log names.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) id: RequestId,
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) client: IpAddr,
}

impl Journal {
    /// A journal without an outage; `clock` measures how long one lasts.
    pub(crate) fn new(clock: &Arc<dyn Clock>) -> Self {
        Self {
            reads: Outage::of("reads for requests", clock),
            writes: Outage::of("writes for requests", clock),
            room: Outage::of("memory for requests", clock),
        }
    }

    /// Logs the answer to a request.
    pub(crate) fn note(&self, asked: &Asked<'_>, status: StatusCode, fault: Option<Fault>) {
        // In scope, so the store's own outage message names the first request that met it.
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
            Some(Fault::Overload) => self.room.note_failure(&"memory for connections is full"),
            None => {}
        }
        tracing::debug!(%method, path, %client, status, "answered");
        if is_success && path.starts_with(STORED) {
            storage.note_success();
            self.room.note_success();
        }
    }
}
