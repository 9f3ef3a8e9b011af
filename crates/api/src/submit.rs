//! `POST /v1/videos`: judge, store, answer. The answer is given after the task is on disk.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use kinora_contract::{
    ErrorCode, Intent, Submission, SubmitRequest, VideoObject, VideoSpec, lineage, validate,
};
use kinora_store::{Insertion, NewKey, NewTask, TaskView};

use crate::auth::Writer;
use crate::error::ApiError;
use crate::openapi::Refusals;
use crate::state::{Api, SharedApi};
use crate::wire::json_response;
use crate::{body, idempotency};

/// How long a client should wait when the queue is full: a task of the usual length takes about
/// that long, and then a place is free.
const QUEUE_RETRY_SECONDS: u64 = 10;

/// Submit a video task.
///
/// The task is accepted, and durable, when the answer arrives; the video is made afterwards.
/// Poll `GET /v1/videos/{id}` until `status` is `completed` or `failed`. The same fields are
/// taken as JSON and as `multipart/form-data` text parts.
#[utoipa::path(
    post,
    path = "/v1/videos",
    tag = "videos",
    params(
        ("Idempotency-Key" = Option<String>, Header,
         description = "1 to 255 visible ASCII characters; the same key and request give the same task for 24 hours.")
    ),
    request_body(content(
        (SubmitRequest = "application/json"),
        (SubmitRequest = "multipart/form-data"),
    )),
    responses((status = 200, description = "The accepted task.", body = VideoObject), Refusals),
    security(("bearer" = []))
)]
pub(crate) async fn submit(
    State(api): State<SharedApi>,
    Writer(key): Writer,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let request = SubmitRequest::from_fields(body::fields(&headers, body).await?)?;
    accept(&api, &key.key, &headers, &request).await
}

/// Judges and stores `request`, and answers with its task.
pub(crate) async fn accept(
    api: &Api,
    key: &NewKey,
    headers: &HeaderMap,
    request: &SubmitRequest,
) -> Result<Response, ApiError> {
    let now_ms = api.clock.now_ms();
    let idempotency = idempotency::of_request(headers, request, now_ms)?;
    let submission = validate(request, &api.catalog, u32::from_le_bytes(api.random()?))?;
    check_model_allowed(key, submission.model())?;
    if api.stopping.is_cancelled() {
        let message = "The service is stopping; send the request again soon.";
        return Err(ApiError::new(ErrorCode::ShuttingDown, message).retry_after(5));
    }
    let Submission { intent, metadata } = submission;
    let new = NewTask {
        id: api.new_task_id()?,
        spec: spec(api, &key.project, intent).await?,
        project: key.project.clone(),
        metadata,
        now_ms,
        idempotency,
        bounds: api.bounds(key.unfinished_max),
    };
    let insertion = api.tasks.insert(new).await?;
    kinora_crash::point("api.before_answer");
    answer(api, insertion)
}

fn check_model_allowed(key: &NewKey, model: &str) -> Result<(), ApiError> {
    match &key.models {
        Some(models) if !models.iter().any(|one| one == model) => {
            let message = format!("This API key may not use the model '{model}'.");
            Err(ApiError::of(ErrorCode::ModelNotAllowed, "model", message))
        }
        _ => Ok(()),
    }
}

/// The complete spec; of a final or an edit it comes from an earlier task of the same project.
async fn spec(api: &Api, project: &str, intent: Intent) -> Result<VideoSpec, ApiError> {
    let now_ms = api.clock.now_ms();
    match intent {
        Intent::New(spec) => Ok(*spec),
        Intent::FinalOf { model, draft } => {
            let task = api.tasks.get(project, draft).await?.map(|view| view.task);
            Ok(lineage::final_spec(task.as_deref(), &model, now_ms)?)
        }
        Intent::EditOf(edit) => {
            let task = api
                .tasks
                .get(project, edit.source)
                .await?
                .map(|view| view.task);
            Ok(lineage::edit_spec(task.as_deref(), *edit, now_ms)?)
        }
    }
}

fn answer(api: &Api, insertion: Insertion) -> Result<Response, ApiError> {
    let full = |message: &str| {
        Err(ApiError::new(ErrorCode::QueueFull, message).retry_after(QUEUE_RETRY_SECONDS))
    };
    match insertion {
        Insertion::Inserted(view) => {
            tracing::info!(task = %view.task.id, model = view.task.spec.model, "task accepted");
            accepted(api, &view)
        }
        Insertion::Replayed(view) => {
            let mut response = accepted(api, &view)?;
            let headers = response.headers_mut();
            headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
            Ok(response)
        }
        Insertion::KeyReused => Err(ApiError::of(
            ErrorCode::IdempotencyKeyReused,
            "Idempotency-Key",
            "This idempotency key was used with another request; use a fresh one.",
        )),
        Insertion::QueueFull => full("The queue is full; send the request again later."),
        Insertion::ProjectFull => {
            full("This project has its maximum of unfinished tasks; wait until one has ended.")
        }
    }
}

fn accepted(api: &Api, view: &TaskView) -> Result<Response, ApiError> {
    Ok(json_response(StatusCode::OK, &api.object(view)?))
}
