//! `GET /v1/videos/{id}/content`: serves result files, by key or by signed URL, with ranges and
//! validators, or sends clients to the result store for them. A signed URL opens one variant of one
//! task until it expires.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use kinora_blobs::sign::SignatureError;
use kinora_contract::{Artifact, ErrorCode, StoredFile, Task, TaskId, TaskState};
use kinora_store::KeyScope;

use crate::error::ApiError;
use crate::extract::PathId;
use crate::file_content::{FileContent, SendError};
use crate::prefer::PREFERENCE_APPLIED;
use crate::refusals::OfContent;
use crate::responses::MEDIA_POLICY;
use crate::result_files::ResultVariant;
use crate::state::{Api, SharedApi};
use crate::{extract, file_content, prefer};

/// How soon a client should retry content that is not ready.
const NOT_READY_RETRY_SECONDS: u64 = 2;

/// Download a result.
///
/// `variant` is `video` (default, MP4), `thumbnail` (WebP), `spritesheet` (JPEG), or `first_frame`
/// or `last_frame`, which are JPEGs of the video's size. A result without its frames answers 404
/// `not_found` for these two. Supports `Range`, `If-Range`, `If-Match` and `If-None-Match`. Without
/// a key, only the signed URLs of a task object work. With results in S3, the answer to `GET` may be
/// a 307 to a signed S3 URL that is valid for five minutes. While the task runs, `thumbnail` is its
/// latest preview, if there is one: at most 320 pixels wide or high, with `Cache-Control: no-store`.
/// With `Prefer: return=minimal`, a preview that does not exist yet is 204 instead of
/// `video_not_ready`.
#[utoipa::path(
    get,
    path = "/v1/videos/{id}/content",
    tag = "videos",
    params(
        ("id" = String, Path, description = "Task identifier."),
        ("variant" = Option<String>, Query, description = "`video`, `thumbnail`, `spritesheet`, `first_frame` or `last_frame`."),
        ("index" = Option<u64>, Query, description = "`0`, which OpenRouter's clients send: a task has one video."),
        ("expires" = Option<u64>, Query, description = "Part of a signed URL."),
        ("signature" = Option<String>, Query, description = "Part of a signed URL."),
    ),
    responses(
        (status = 200, description = "The bytes.", content(
            (Vec<u8> = "video/mp4"), (Vec<u8> = "image/webp"), (Vec<u8> = "image/jpeg"),
        )),
        (status = 204, description = "There is no preview yet, and `Prefer: return=minimal` was sent."),
        (status = 206, description = "The requested range of the bytes."),
        (status = 307, description = "Redirect to the URL of the bytes, which is valid for a few minutes."),
        (status = 304, description = "The client already has these bytes."),
        OfContent,
    ),
    security(("bearer" = []), ())
)]
pub(crate) async fn content(
    State(api): State<SharedApi>,
    PathId(id): PathId,
    RawQuery(query): RawQuery,
    method: Method,
    headers: HeaderMap,
    extensions: Extensions,
) -> Result<Response, ApiError> {
    let query = query.unwrap_or_default();
    let variant = variant(&query)?;
    let found = find(&api, id, variant, &query, &headers, &extensions).await?;
    let task = found.ok_or_else(ApiError::video_not_found)?;
    if let Some(preview) = preview(&api, &task, variant).await? {
        return Ok(preview);
    }
    let file = match file(&task, variant) {
        Err(error) if is_awaited(&error, variant) && prefer::is_minimal(&headers) => {
            return Ok(no_preview());
        }
        found => found?,
    };
    send(&api, &task, variant, file, &method, &headers).await
}

/// Whether a refusal says of a preview that it does not exist yet.
fn is_awaited(error: &ApiError, variant: ResultVariant) -> bool {
    variant == ResultVariant::Thumbnail && error.code() == ErrorCode::VideoNotReady
}

/// Nothing, for a client that looks again later: browsers write every 4xx into their console.
fn no_preview() -> Response {
    let applied = HeaderValue::from_static("return=minimal");
    let no_store = HeaderValue::from_static("no-store");
    let headers = [
        (PREFERENCE_APPLIED, applied),
        (header::CACHE_CONTROL, no_store),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// The requested variant. Other parameters belong to the signature, or change nothing.
fn variant(query: &str) -> Result<ResultVariant, ApiError> {
    let mut variant = None;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "variant" if variant.is_none() => {
                variant = Some(ResultVariant::from_name(&value).ok_or_else(|| {
                    let names = ResultVariant::ALL.map(ResultVariant::name).join(", ");
                    invalid("variant", &format!("'variant' must be one of {names}."))
                })?);
            }
            "variant" => {
                return Err(invalid("variant", "'variant' was sent more than once."));
            }
            "expires" | "signature" => {}
            // OpenRouter's clients number the videos of a task.
            "index" if value == "0" => {}
            "index" => {
                return Err(invalid("index", "'index' must be 0: a task has one video."));
            }
            other => return Err(ApiError::unknown_parameter(other)),
        }
    }
    Ok(variant.unwrap_or(ResultVariant::Video))
}

fn invalid(param: &str, message: &str) -> ApiError {
    ApiError::for_param(ErrorCode::InvalidValue, param, message)
}

/// Finds the task by the signature in the URL, or by the request's key.
async fn find(
    api: &Api,
    id: TaskId,
    variant: ResultVariant,
    query: &str,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<Option<Arc<Task>>, ApiError> {
    let mut has_expired = false;
    if query.contains("signature=") {
        let now_s = api.clock.now_ms() / 1000;
        match api.signer.verify(id, variant.name(), query, now_s) {
            // A valid signed URL needs no key; a key that comes with it is ignored.
            Ok(()) => return Ok(api.tasks.task(id).await?),
            Err(SignatureError::Expired) => has_expired = true,
            Err(_) if !headers.contains_key(header::AUTHORIZATION) => {
                let message = "Invalid result address; query the task for the current one.";
                return Err(ApiError::new(ErrorCode::InvalidApiKey, message));
            }
            Err(_) => {}
        }
    }
    let found = match extract::authorize(api, headers, extensions, KeyScope::Read).await {
        Ok(key) => api.tasks.get(&key.key.project, id).await?,
        // A rate limit or an unavailable store must not become a final answer.
        // The URL was good once, so "expired" is more helpful than "unknown key".
        Err(error) if has_expired && is_useless_key(&error) => None,
        Err(error) => return Err(error),
    };
    if found.is_none() && has_expired {
        let message = "This result address has expired.";
        return Err(ApiError::new(ErrorCode::VideoExpired, message));
    }
    Ok(found)
}

const fn is_useless_key(error: &ApiError) -> bool {
    matches!(
        error.code(),
        ErrorCode::InvalidApiKey | ErrorCode::ScopeMissing
    )
}

fn file(task: &Task, variant: ResultVariant) -> Result<&StoredFile, ApiError> {
    match &task.state {
        TaskState::Completed(artifact) => file_of(artifact, variant),
        TaskState::Failed(_) => {
            let message = "This video failed; it has no content.";
            Err(ApiError::new(ErrorCode::VideoFailed, message).final_answer())
        }
        TaskState::Waiting | TaskState::Running => {
            let message = "This video is not completed yet; query the task until it is.";
            let error = ApiError::new(ErrorCode::VideoNotReady, message);
            Err(error.retry_after(NOT_READY_RETRY_SECONDS))
        }
        TaskState::Expired => Err(ApiError::expired()),
    }
}

fn file_of(artifact: &Artifact, variant: ResultVariant) -> Result<&StoredFile, ApiError> {
    variant.file_in(artifact).ok_or_else(|| {
        let name = variant.name();
        let message = format!(
            "This video has no '{name}': an earlier version of the service made it, or its frames \
             could not be decoded."
        );
        ApiError::for_param(ErrorCode::NotFound, "variant", message)
    })
}

/// Sends `file`, or says why it is lost.
async fn send(
    api: &Api,
    task: &Task,
    variant: ResultVariant,
    file: &StoredFile,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let content = FileContent {
        file,
        media_type: variant.media_type(),
        disposition: &variant.disposition(task.id),
        expires_at_ms: task.expires_at_ms.unwrap_or(u64::MAX),
    };
    match file_content::send(api, content, method, headers).await {
        Ok(response) => Ok(response),
        Err(SendError::Refused(error)) => Err(error),
        Err(SendError::Lost(found)) => {
            Err(api.lost.refusal(&*api.tasks, task.id, file, found).await)
        }
    }
}

/// The preview, if `variant` is the thumbnail and the task's run has one.
async fn preview(
    api: &Api,
    task: &Task,
    variant: ResultVariant,
) -> Result<Option<Response>, ApiError> {
    if variant != ResultVariant::Thumbnail || !matches!(task.state, TaskState::Running) {
        return Ok(None);
    }
    Ok(api.tasks.preview(task.id).await?.map(respond))
}

fn respond(preview: Arc<[u8]>) -> Response {
    let bytes = Bytes::from_owner(preview);
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, ResultVariant::Thumbnail.media_type()),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, MEDIA_POLICY),
        (header::CONTENT_DISPOSITION, "inline"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use kinora_store::conformance::fixtures::artifact;

    use super::*;

    #[test]
    fn a_result_of_an_earlier_version_has_all_variants_but_its_frames() {
        let made = artifact("a");
        let earlier = Artifact {
            first_frame: None,
            last_frame: None,
            ..made.clone()
        };
        for variant in ResultVariant::ALL {
            assert!(file_of(&made, variant).is_ok(), "{variant:?}");
            let found = file_of(&earlier, variant);
            if !variant.name().ends_with("_frame") {
                assert!(found.is_ok(), "{variant:?}");
                continue;
            }
            let refused = found.unwrap_err().into_response();
            assert_eq!(refused.status(), StatusCode::NOT_FOUND, "{variant:?}");
        }
    }
}
