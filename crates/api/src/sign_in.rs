//! `POST /studio/sign-in`: the page exchanges the code of a [`SignInLink`] for a key. The code is in the fragment of the link, so
//! that no log, proxy or referrer has it, and a program that only fetches the link does not use it up.

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use kinora_contract::ErrorCode;
use kinora_contract::limits::SIGN_IN_ATTEMPTS_PER_MINUTE;
use serde::{Deserialize, Serialize};

use crate::body;
use crate::error::ApiError;
use crate::extract::only;
use crate::memory::site_of;
use crate::middleware::SharedContext;
use crate::responses::JsonResponse;
use crate::sign_in_link::{SignInError, SignInLink};
use crate::state::{Api, SharedApi};

/// What the page sends.
#[derive(Deserialize)]
struct SignInCode {
    code: String,
}

/// The key of a browser that is signed in.
#[derive(Serialize)]
pub(crate) struct SignedIn {
    key: String,
}

/// Signs a browser in by the code of the link.
pub(crate) async fn sign_in(
    State(api): State<SharedApi>,
    context: Option<Extension<SharedContext>>,
    headers: HeaderMap,
    body: Body,
) -> Result<JsonResponse<SignedIn>, ApiError> {
    let link = api.sign_in.as_deref();
    let link = link.ok_or_else(|| refusal(SignInError::Unknown))?;
    check_origin(link, &headers)?;
    if let Some(Extension(context)) = context {
        count(&api, &context)?;
    }
    let body = body::json(&headers, body).await?;
    let SignInCode { code } = serde_json::from_slice(&body).map_err(|_| {
        let message = "'code' is missing; it is the text behind the last '=' of the link.";
        ApiError::for_param(ErrorCode::MissingRequiredParameter, "code", message)
    })?;
    let key = link.redeem(&code, &*api.keys).await.map_err(refusal)?;
    Ok(JsonResponse(SignedIn {
        key: key.reveal().to_owned(),
    }))
}

/// Refuses the pages of other origins. Browsers send `Origin` with every `POST`.
fn check_origin(link: &SignInLink, headers: &HeaderMap) -> Result<(), ApiError> {
    if only(headers, header::ORIGIN).is_some_and(|origin| link.is_for(origin.as_bytes())) {
        return Ok(());
    }
    Err(refused(
        "This sign-in link is for another address of the service; open it as `kinora serve` has printed it.",
    ))
}

/// Counts the attempt against the client's address.
fn count(api: &Api, context: &SharedContext) -> Result<(), ApiError> {
    let client = format!("sign-in from {}", site_of(context.client));
    let now_ms = api.clock.now_ms();
    let meter = &context.meter;
    let standing = meter.count_here(&client, SIGN_IN_ATTEMPTS_PER_MINUTE, now_ms);
    standing.retry_after_seconds.map_or(Ok(()), |seconds| {
        let message = "Too many attempts to sign in; wait a minute, then open the link again.";
        Err(ApiError::new(ErrorCode::RateLimitExceeded, message).retry_after(seconds))
    })
}

fn refusal(error: SignInError) -> ApiError {
    refused(match error {
        SignInError::Unknown => {
            "This sign-in link is not the one that this process has printed. Start `kinora serve` again for a new link, or \
             sign in with a key."
        }
        SignInError::Used => {
            "This sign-in link was used already; it works once. Start `kinora serve` again for a new link, or sign in with a \
             key. If nobody here has used it, revoke the newest key that `kinora keys list` shows as 'studio'."
        }
        SignInError::Expired => {
            "This sign-in link has expired; it works for ten minutes. Start `kinora serve` again for a new link, or sign in \
             with a key."
        }
        SignInError::Store(error) => return error.into(),
    })
}

fn refused(message: &str) -> ApiError {
    ApiError::new(ErrorCode::InvalidApiKey, message)
}
