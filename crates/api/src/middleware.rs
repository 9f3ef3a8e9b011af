//! Everything around an endpoint: limits on headers, the `Host` check, the request id, rate-limit
//! headers, headers for browsers, the request log, and error envelopes for failures outside of
//! endpoints, panics included. Knows no endpoint.

use std::net::{IpAddr, Ipv6Addr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, Method, Request, StatusCode, Version, header};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use kinora_contract::limits::{HEADER_BYTES_MAX, HEADERS_MAX};
use kinora_contract::{Clock, ErrorCode};
use kinora_store::OutageLog;
use tower_service::Service;

use crate::cors::CorsPolicy;
use crate::error::{ApiError, ServiceFault};
use crate::memory::{ConnectionMemory, MemoryBudget};
use crate::openrouter;
use crate::rates::{RateLimits, RequestMeter};
use crate::request_id::RequestIds;
use crate::responses::add_security_headers;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Runs before and after every endpoint.
#[derive(Debug)]
pub(crate) struct Middleware {
    pub(crate) router: Router,
    pub(crate) ids: RequestIds,
    pub(crate) rates: Arc<RateLimits>,
    pub(crate) cors: CorsPolicy,
    pub(crate) buffers: MemoryBudget,
    pub(crate) journal: RequestLog,
}

impl Middleware {
    /// Answers a request of `client`, or sends the refusal that the listener has already decided
    /// on. Takes memory for the answer from the connection's `room`.
    pub(crate) async fn respond(
        &self,
        client: IpAddr,
        refused: Option<ApiError>,
        room: &ConnectionMemory,
        mut request: Request<Body>,
    ) -> Response {
        let id = self.ids.next();
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let context = Arc::new(RequestContext {
            meter: RequestMeter::new(self.rates.clone()),
            buffers: self.buffers.clone(),
            client,
        });
        let granted = self.cors.granted(request.headers());
        let is_openrouter = openrouter::is_client(request.headers());
        request.extensions_mut().insert(context.clone());
        let checked = match refused {
            Some(error) => Err(error),
            None => check_headers(request.headers())
                .and_then(|()| check_host(request.version(), request.headers())),
        };
        let mut response = match checked {
            Err(error) => error.into_response(),
            Ok(()) => match self.cors.preflight(&request) {
                Some(response) => response,
                None => id.scope(guarded(self.router.clone(), request)).await,
            },
        };
        if is_openrouter {
            response = openrouter::adapt(&method, response).await;
        }
        // A submit that was stored must be answered even if memory is short: without an answer, the
        // client would not know whether it has a task.
        let has_changed_something = !method.is_safe() && response.status().is_success();
        if has_changed_something {
            room.force_admit(&mut response, client);
        } else if let Err(full) = room.admit(&mut response, client).await {
            response = ApiError::from(full).into_response();
        }
        // After the admission, which may have replaced the response by a refusal for lack of
        // memory.
        let fault = response.extensions_mut().remove::<ServiceFault>();
        // In scope, so the store's own outage message names the first request that met it.
        id.scope_sync(|| {
            let status = response.status();
            self.journal
                .record(&method, uri.path(), client, status, fault);
        });
        let headers = response.headers_mut();
        headers.insert(X_REQUEST_ID, id.header());
        if let Some(standing) = context.meter.status() {
            standing.write(headers);
        }
        self.cors.grant(granted, headers);
        add_security_headers(headers);
        response
    }
}

/// Runs the endpoint; a panic becomes an internal error.
async fn guarded(mut router: Router, request: Request<Body>) -> Response {
    // Unwind safety: the router and its state are shared by reference count and locks recover from
    // poisoning, so a panic leaves nothing half done that the next request would see.
    let answered = AssertUnwindSafe(router.call(request)).catch_unwind().await;
    match answered {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => ApiError::internal("an endpoint panicked").into_response(),
    }
}

fn check_headers(headers: &HeaderMap) -> Result<(), ApiError> {
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    if headers.len() > HEADERS_MAX || bytes > HEADER_BYTES_MAX {
        let message = format!(
            "Headers too large: at most {HEADERS_MAX} headers and {HEADER_BYTES_MAX} bytes in all."
        );
        return Err(ApiError::new(ErrorCode::HeadersTooLarge, message));
    }
    Ok(())
}

/// Maximum length of a host name, in bytes (RFC 1035, section 2.3.4).
const NAME_BYTES_MAX: usize = 255;

/// Refuses a request without the one valid `Host` that HTTP/1.1 requires. HTTP/1.0 may omit it.
fn check_host(version: Version, headers: &HeaderMap) -> Result<(), ApiError> {
    let mut all = headers.get_all(header::HOST).iter();
    let message = match (all.next(), all.next()) {
        (None, _) if version < Version::HTTP_11 => return Ok(()),
        (None, _) => "The request has no 'Host' header; HTTP/1.1 needs one.",
        (Some(_), Some(_)) => "'Host' was sent more than once.",
        (Some(only), None) => match only.to_str() {
            Ok(text) if is_host(text) => return Ok(()),
            _ => "'Host' must be a host name or an IP address, with an optional port.",
        },
    };
    Err(ApiError::for_param(ErrorCode::InvalidValue, "Host", message).closing())
}

/// Whether `text` is a host with an optional port, as in a URL (RFC 3986, section 3.2.2).
fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((address, port))) => (address.parse::<Ipv6Addr>().is_ok(), port),
        Some(None) => return false,
        None => {
            let end = text.find(':').unwrap_or(text.len());
            let (name, port) = text.split_at(end);
            (is_name(name), port)
        }
    };
    host && is_port(port)
}

/// A name or an IPv4 address. RFC 3986 allows more characters, but names that resolve use only
/// these.
fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte))
}

/// Empty, or a colon followed by an optional number.
fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        None => text.is_empty(),
        Some(digits) => {
            let all = digits.bytes().all(|byte| byte.is_ascii_digit());
            all && (digits.is_empty() || digits.parse::<u16>().is_ok())
        }
    }
}

/// Answers under these paths need storage.
const STORAGE_PATHS: [&str; 2] = ["/v1/videos", "/v1/files"];

/// Logs the requests of a listener.
#[derive(Debug)]
pub(crate) struct RequestLog {
    /// Separate from writes, since a full disk fails only writes.
    reads: OutageLog,
    writes: OutageLog,
    /// The memory for connections.
    room: OutageLog,
}

impl RequestLog {
    /// A journal without an outage; `clock` measures how long one lasts.
    pub(crate) fn new(clock: &Arc<dyn Clock>) -> Self {
        Self {
            reads: OutageLog::new("reads for requests", clock),
            writes: OutageLog::new("writes for requests", clock),
            room: OutageLog::new("memory for requests", clock),
        }
    }

    /// Logs the answer to a request.
    fn record(
        &self,
        method: &Method,
        path: &str,
        client: IpAddr,
        status: StatusCode,
        fault: Option<ServiceFault>,
    ) {
        let is_success = status.is_success() && fault.is_none();
        let status = status.as_u16();
        let storage = if method.is_safe() {
            &self.reads
        } else {
            &self.writes
        };
        match fault {
            Some(ServiceFault::Internal(cause)) => {
                tracing::error!(cause, %method, path, %client, status, "internal error");
                return;
            }
            Some(ServiceFault::Storage(cause)) => storage.record_failure(&cause),
            Some(ServiceFault::Overload) => {
                self.room.record_failure(&"memory for connections is full");
            }
            None => {}
        }
        tracing::debug!(%method, path, %client, status, "answered");
        if is_success && STORAGE_PATHS.iter().any(|one| path.starts_with(one)) {
            storage.record_success();
            self.room.record_success();
        }
    }
}

/// The listener's shared resources, as one request uses them.
#[derive(Debug)]
pub(crate) struct RequestContext {
    /// Counts the request against its key.
    pub(crate) meter: RequestMeter,
    /// The memory budget for connections.
    pub(crate) buffers: MemoryBudget,
    /// The client's address.
    pub(crate) client: IpAddr,
}

/// The context, shared by the listener and the endpoint.
pub(crate) type SharedContext = Arc<RequestContext>;

#[cfg(test)]
mod host_tests {
    use super::*;

    #[test]
    fn hosts_of_urls_are_hosts() {
        for good in [
            "localhost",
            "localhost:8080",
            "Kinora.Example.com.",
            "my_service:80",
            "192.0.2.1:65535",
            "[::1]",
            "[2001:db8::1]:8080",
            "xn--bcher-kva.example",
            "example.com:",
        ] {
            assert!(is_host(good), "{good}");
        }
        let long = "a".repeat(256);
        for bad in [
            "",
            ":80",
            "a b",
            "a,b",
            "a/b",
            "a?b",
            "a#b",
            "a\\b",
            "user@host",
            "http://host",
            "host:80:80",
            "host:65536",
            "host:8o",
            "host:-1",
            "::1",
            "[::1",
            "[::1]x",
            "[::1%eth0]",
            "[localhost]",
            "[]",
            &long,
        ] {
            assert!(!is_host(bad), "{bad}");
        }
    }

    #[test]
    fn http_1_1_needs_one_host_and_http_1_0_none() {
        let headers = |hosts: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, header::HeaderValue::from_static(host));
            }
            headers
        };
        for (version, hosts, good) in [
            (Version::HTTP_11, &["a"][..], true),
            (Version::HTTP_11, &[], false),
            (Version::HTTP_11, &["a", "a"], false),
            (Version::HTTP_11, &["a b"], false),
            (Version::HTTP_10, &[], true),
            (Version::HTTP_10, &["a"], true),
            (Version::HTTP_10, &["a", "b"], false),
        ] {
            let checked = check_host(version, &headers(hosts));
            assert_eq!(checked.is_ok(), good, "{version:?} {hosts:?}");
        }
    }
}
