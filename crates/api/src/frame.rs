//! Everything around an endpoint: header limits, the request id, the key's rate, headers for
//! browsers, and error envelopes for failures outside endpoints, panics included.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, Request};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use kinora_contract::limits::{HEADER_BYTES_MAX, HEADERS_MAX};
use kinora_contract::{ErrorCode, Refusal};
use tower_service::Service;

use crate::buffers::Buffers;
use crate::context::Context;
use crate::cors::Cors;
use crate::error::{ApiError, Fault};
use crate::host;
use crate::journal::{Asked, Journal};
use crate::listen::Room;
use crate::rates::{Meter, RateLimits};
use crate::request_id::RequestIds;
use crate::security::harden;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Runs before and after every endpoint.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) router: Router,
    pub(crate) ids: RequestIds,
    pub(crate) rates: Arc<RateLimits>,
    pub(crate) cors: Cors,
    pub(crate) buffers: Buffers,
    pub(crate) journal: Journal,
}

impl Front {
    /// Answers a request of `client`, or sends the refusal that the listener has already decided
    /// on. Takes memory for the answer from the connection's `room`.
    pub(crate) async fn answer(
        &self,
        client: IpAddr,
        refused: Option<ApiError>,
        room: &Room,
        mut request: Request<Body>,
    ) -> Response {
        let id = self.ids.next();
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let context = Arc::new(Context {
            meter: Meter::new(self.rates.clone()),
            buffers: self.buffers.clone(),
        });
        let granted = self.cors.granted(request.headers());
        request.extensions_mut().insert(context.clone());
        let checked = match refused {
            Some(error) => Err(error),
            None => check_headers(request.headers())
                .map_err(ApiError::from)
                .and_then(|()| host::check(request.version(), request.headers())),
        };
        let mut response = match checked {
            Err(error) => error.into_response(),
            Ok(()) => match self.cors.preflight(&request) {
                Some(response) => response,
                None => id.scope(guarded(self.router.clone(), request)).await,
            },
        };
        let has_changed_something = !method.is_safe() && response.status().is_success();
        if has_changed_something {
            room.admit_anyway(&mut response, client);
        } else if let Err(full) = room.admit(&mut response, client).await {
            response = ApiError::from(full).into_response();
        }
        let fault = response.extensions_mut().remove::<Fault>();
        let asked = Asked {
            id,
            method: &method,
            path: uri.path(),
            client,
        };
        self.journal.note(&asked, response.status(), fault);
        let headers = response.headers_mut();
        headers.insert(X_REQUEST_ID, id.header());
        if let Some(standing) = context.meter.standing() {
            standing.write(headers);
        }
        self.cors.grant(granted, headers);
        harden(headers);
        response
    }
}

/// Runs the endpoint; a panic becomes an internal error.
async fn guarded(mut router: Router, request: Request<Body>) -> Response {
    let answered = AssertUnwindSafe(router.call(request)).catch_unwind().await;
    match answered {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => ApiError::internal(&"an endpoint panicked").into_response(),
    }
}

fn check_headers(headers: &HeaderMap) -> Result<(), Refusal> {
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    if headers.len() > HEADERS_MAX || bytes > HEADER_BYTES_MAX {
        let message = format!(
            "Headers too large: at most {HEADERS_MAX} headers and {HEADER_BYTES_MAX} bytes in all."
        );
        return Err(Refusal::new(ErrorCode::HeadersTooLarge, message));
    }
    Ok(())
}
