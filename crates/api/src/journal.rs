//! What the log says of requests. Each answer is a line for those who look closely; a fault that
//! should not happen is one for everybody. Storage that is away refuses every request that needs it:
//! that is told when it begins and when it is over, with the number of those refused.

use std::net::IpAddr;

use axum::http::{Method, StatusCode};
use kinora_outage::Outage;

use crate::error::Fault;

/// What answers need the storage.
const STORED: &str = "/v1/videos";

/// Writes the log of a listener's requests.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// Requests that only read, and those that change something: a full disk refuses these alone.
    reads: Outage,
    changes: Outage,
    overload: Outage,
}

/// A request, as far as the log names it.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) id: &'a str,
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) client: IpAddr,
}

impl Journal {
    /// Notes the answer to a request.
    pub(crate) fn note(&self, asked: &Asked<'_>, status: StatusCode, fault: Option<Fault>) {
        let Asked {
            id: request,
            method,
            path,
            client,
        } = asked;
        let status_code = status.as_u16();
        // Only the first of an outage is for everybody.
        let begins = match &fault {
            Some(Fault::Storage(_)) => self.storage(method).failed(1),
            Some(Fault::Overload) => self.overload.failed(1),
            Some(Fault::Internal(_)) | None => false,
        };
        match &fault {
            Some(Fault::Internal(cause)) => tracing::error!(
                cause, request, %method, path, %client, status = status_code, "internal error"
            ),
            Some(Fault::Storage(cause)) if begins => tracing::error!(
                cause, request, %method, path,
                "storage failing; requests are refused until it recovers"
            ),
            Some(Fault::Overload) if begins => {
                tracing::warn!(request, %method, path, "overloaded; requests are refused");
            }
            _ => tracing::debug!(request, %method, path, %client, status = status_code, "answered"),
        }
        if fault.is_none() && status.is_success() && path.starts_with(STORED) {
            self.note_success(method);
        }
    }

    fn note_success(&self, method: &Method) {
        if let Some(over) = self.storage(method).succeeded() {
            let (refused, lasted) = (over.failures, over.lasted);
            tracing::info!(
                refused,
                ?lasted,
                "storage recovered; requests are served again"
            );
        }
        if let Some(over) = self.overload.succeeded() {
            let (refused, lasted) = (over.failures, over.lasted);
            tracing::info!(refused, ?lasted, "overload over; requests are served again");
        }
    }

    fn storage(&self, method: &Method) -> &Outage {
        if method.is_safe() {
            &self.reads
        } else {
            &self.changes
        }
    }
}
