//! `POST /v1/videos`: validates a request, stores its task and responds with it once it is on disk.
//! The other endpoints that create tasks (`edit.rs`) join at [`create_task`].

use axum::body::Body;
use axum::extract::State;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use kinora_contract::limits::RETRY_AFTER_SECONDS_MAX;
use kinora_contract::validate::check_ports;
use kinora_contract::{
    Currency, ErrorCode, Status, SubmitIntent, SubmitRequest, Task, TaskId, UnixMs,
    ValidatedRequest, VideoObject, VideoSpec, derived_spec, iso_date, validate,
};
use kinora_store::{
    BudgetOwner, BudgetPeriod, ExceededBudget, IdempotencyKey, InsertOutcome, NewKey, NewTask,
    QueueBounds, RetryAfter, TaskCallback,
};
use kinora_traces::{SpanRole, TaskSpan};

use crate::error::ApiError;
use crate::extract::{WriteKey, only};
use crate::form_uploads::{self, ReadSubmit};
use crate::idempotency;
use crate::named_files::NamedFiles;
use crate::refusals::OfSubmit;
use crate::responses::json_response;
use crate::state::{Api, SharedApi};

/// Header with a warning about an accepted task.
const WARNING: &str = "x-kinora-warning";
const NOT_SERVED: &str = "no worker serves this model at the moment; the task waits";
const PAUSED: &str = "this model is paused; the task waits until it is resumed";

/// Submit a video task.
///
/// The answer means that the task is accepted and durable; the video is made afterwards.
/// Poll `GET /v1/videos/{id}` until `status` is `completed` or `failed`. The endpoint takes the
/// same fields as JSON and as text parts of `multipart/form-data`.
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
    responses(
        (status = 200, description = "The accepted task.", body = VideoObject, headers(
            ("x-kinora-warning" = String,
             description = "Present when the model is paused, or no worker serves it at the moment, so that the task waits.")
        )),
        OfSubmit
    ),
    security(("bearer" = []))
)]
pub(crate) async fn submit(
    State(api): State<SharedApi>,
    WriteKey(key): WriteKey,
    extensions: Extensions,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let request = form_uploads::read(&api, &key.key, &headers, &extensions, body).await?;
    let endpoint = SubmitEndpoint {
        name: "POST /v1/videos",
        source: None,
    };
    create_task(&api, &key.key, &headers, &request, endpoint).await
}

/// An endpoint that creates tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubmitEndpoint {
    /// Its name in traces: method and route.
    pub(crate) name: &'static str,
    /// The video in its path, which must exist.
    pub(crate) source: Option<TaskId>,
}

/// Creates a task from a request that has been read, and responds with it:
///
/// 1. Validate the request for its key, the models and the state of the service. Find the uploaded files
///    that it names.
/// 2. Check the operator's policy.
/// 3. Insert the task. The store decides about the idempotency key, the queue and the quotas.
/// 4. Respond with the task object.
///
/// An identical request with the same `Idempotency-Key` gets the same task again.
pub(crate) async fn create_task(
    api: &Api,
    key: &NewKey,
    headers: &HeaderMap,
    sent: &ReadSubmit,
    endpoint: SubmitEndpoint,
) -> Result<Response, ApiError> {
    let idempotency = read_idempotency(headers, &sent.request)?;
    let begun_ms = api.clock.now_ms();
    if sent.has_files()
        && let Some(key_sent) = &idempotency
        && let Some(task) = api.tasks.find_twin(&key.project, key_sent).await?
    {
        // Its files are stored: do not store them again.
        return replayed_response(api, &task).await;
    }

    let checked = async {
        // 1. Validate.
        let request = sent.store_files(api, &key.project).await?;
        let (new, named) = validate_task(api, key, &request, endpoint.source).await?;
        // 2. Check the policy. Last of the checks, because it asks another service, and may cost money.
        if let Some(gate) = &api.gate {
            gate.check(&new, named.readable(&new.spec).as_ref()).await?;
        }
        Ok((new, named))
    };
    let (mut new, named) = match checked.await {
        Ok(checked) => checked,
        Err(refusal) => return replay_or_refuse(api, key, idempotency.as_ref(), refusal).await,
    };
    new.idempotency = idempotency;

    // 3. Insert. Key, queue and quotas are checked in the transaction of the insertion: between a
    //    check here and the insertion, another process could use up the same room.
    let mut span = submit_span(api, headers, endpoint.name, begun_ms, &new);
    new.trace = span.context();
    let inserted = api.tasks.insert(new).await;
    if !matches!(inserted, Ok(InsertOutcome::Inserted(_))) {
        // There is no new task that this trace could belong to.
        span.discard();
    }
    let insertion = inserted?;
    kinora_system::crash::point("api.before_answer");

    // 4. Respond. The task is on disk: if the response is lost, the client's retry finds it by its key.
    let responded = respond(api, insertion, &named).await;
    if let Ok(response) = &responded {
        let status = response.status().as_u16();
        span.set("http.response.status_code", u32::from(status));
    }
    responded
}

/// The response to a request that may not become a task now. A refusal does not revoke an earlier
/// answer: the same request may have been accepted before, and its draft deleted since, say, or its
/// model withdrawn. A client that retries because it lost that answer must get its task.
async fn replay_or_refuse(
    api: &Api,
    key: &NewKey,
    idempotency: Option<&IdempotencyKey>,
    refusal: ApiError,
) -> Result<Response, ApiError> {
    let Some(idempotency) = idempotency else {
        return Err(refusal);
    };
    match api.tasks.find_twin(&key.project, idempotency).await? {
        Some(task) => replayed_response(api, &task).await,
        None => Err(refusal),
    }
}

/// The task to store, and the files that it names, if the request is valid, and its key and the service
/// allow it.
async fn validate_task(
    api: &Api,
    key: &NewKey,
    request: &SubmitRequest,
    source: Option<TaskId>,
) -> Result<(NewTask, NamedFiles), ApiError> {
    if let Some(source) = source
        && api.tasks.get(&key.project, source).await?.is_none()
    {
        return Err(ApiError::video_not_found());
    }
    // For a request without one. It is stored with the task, so that every attempt makes the same
    // video.
    let seed = u32::from_le_bytes(api.random()?);
    let submission = validate(request, &api.catalog, seed)?;
    let named = NamedFiles::find(api, &key.project, request).await?;
    let is_named = |url: &str| named.contains(url);
    check_ports(request, &api.settings.reference_ports, is_named)?;
    check_model_allowed(key, submission.model())?;
    let bounds = api.bounds(key.unfinished_max);
    check_submits_allowed(bounds)?;
    api.check_accepts()?;
    let ValidatedRequest {
        mut intent,
        metadata,
        callback_url,
        priority,
    } = submission;
    named.resolve(&mut intent);
    let callback = find_callback(api, &key.project, callback_url).await?;
    let spec = resolve_spec(api, &key.project, intent).await?;
    let card = api.catalog.find(&spec.model);
    let new = NewTask {
        cost: card.and_then(|card| card.estimate(&spec, api.catalog.currency())),
        budgets: api.budgets(key),
        files: named.ids(),
        callback,
        id: TaskId::from_parts(api.clock.now_ms(), api.random()?),
        spec,
        project: key.project.clone(),
        metadata,
        priority,
        idempotency: None,
        trace: None,
        bounds,
    };
    Ok((new, named))
}

fn check_model_allowed(key: &NewKey, model: &str) -> Result<(), ApiError> {
    match &key.models {
        Some(models) if !models.iter().any(|one| one == model) => {
            let message = format!("This API key may not use the model '{model}'.");
            let code = ErrorCode::ModelNotAllowed;
            Err(ApiError::for_param(code, "model", message))
        }
        _ => Ok(()),
    }
}

/// Refuses keys with a limit of 0 by a code that SDKs do not retry.
fn check_submits_allowed(bounds: QueueBounds) -> Result<(), ApiError> {
    if bounds.project_unfinished_max > 0 && bounds.waiting_max > 0 {
        return Ok(());
    }
    let message = "This API key may not submit tasks: its bound on unfinished tasks is 0. Ask the operator for \
                   another key; waiting does not help.";
    Err(ApiError::new(ErrorCode::SubmitsNotAllowed, message))
}

/// The webhook to notify when the task ends, if the request names one. The project needs a secret
/// that its receiver can verify with.
async fn find_callback(
    api: &Api,
    project: &str,
    url: Option<String>,
) -> Result<Option<TaskCallback>, ApiError> {
    let Some(url) = url else {
        return Ok(None);
    };
    let webhooks = api.webhooks.webhooks().await?;
    let mut own = webhooks.into_iter();
    let own = own.find(|one| one.project == project && one.url.is_none());
    let Some(webhook) = own.map(|one| one.id) else {
        let message = "This project has no signing secret for callbacks. Ask the operator to make one with `kinora \
                       webhooks add`, or leave out 'callback_url'.";
        let code = ErrorCode::UnsupportedParameter;
        return Err(ApiError::for_param(code, "callback_url", message));
    };
    Ok(Some(TaskCallback { webhook, url }))
}

/// The complete spec; for a final or an edit it comes from an earlier task of the same project.
async fn resolve_spec(
    api: &Api,
    project: &str,
    intent: SubmitIntent,
) -> Result<VideoSpec, ApiError> {
    let now_ms = api.clock.now_ms();
    match intent {
        SubmitIntent::New(spec) => Ok(*spec),
        SubmitIntent::FinalOf { model, draft } => {
            let task = api.tasks.get(project, draft).await?;
            Ok(derived_spec::final_spec(task.as_deref(), &model, now_ms)?)
        }
        SubmitIntent::EditOf(edit) => {
            let task = api.tasks.get(project, edit.source).await?;
            Ok(derived_spec::edit_spec(task.as_deref(), *edit, now_ms)?)
        }
    }
}

async fn respond(
    api: &Api,
    insertion: InsertOutcome,
    named: &NamedFiles,
) -> Result<Response, ApiError> {
    match insertion {
        InsertOutcome::Inserted(task) => {
            tracing::info!(task = %task.id, model = task.spec.model, "task accepted");
            task_response(api, &task).await
        }
        InsertOutcome::Replayed(task) => replayed_response(api, &task).await,
        InsertOutcome::KeyReused => Err(idempotency::reused()),
        InsertOutcome::QueueFull(after) => Err(queue_full("The queue is full.", after)),
        InsertOutcome::ProjectFull(after) => Err(queue_full(
            "This project has reached its maximum of unfinished tasks.",
            after,
        )),
        InsertOutcome::QuotaFull(quota) => Err(quota.into()),
        InsertOutcome::FileGone(id) => Err(named.gone(id)),
        InsertOutcome::OverBudget(over) => Err(over_budget(over, api.catalog.currency())),
    }
}

/// The refusal while the queue is full, for the reason `why`.
fn queue_full(why: &str, RetryAfter { millis }: RetryAfter) -> ApiError {
    let seconds = millis.div_ceil(1000).clamp(1, RETRY_AFTER_SECONDS_MAX);
    let message = format!("{why} Send the request again in {seconds} s.");
    ApiError::new(ErrorCode::QueueFull, message).retry_after(seconds)
}

/// The refusal of a task that a budget does not have the amount for. SDKs must not retry it on their own: they would not
/// wait until the renewal.
fn over_budget(over: ExceededBudget, currency: Currency) -> ApiError {
    let owner = match over.owner {
        BudgetOwner::Key => "this API key",
        BudgetOwner::Project => "this project",
    };
    let period = match over.period {
        BudgetPeriod::Day => "day",
        BudgetPeriod::Month => "month",
    };
    let (cost, limit, left) = (over.cost, over.limit, over.left);
    if over.is_too_small() {
        let message = format!(
            "This video is estimated to cost {cost} {currency}, but the whole budget of {owner} is {limit} {currency} per \
             {period}. Send a request that costs less, or ask the operator for a larger budget; waiting does not help."
        );
        return ApiError::new(ErrorCode::BudgetTooSmall, message);
    }
    let renewal = iso_date(over.renews_at_ms);
    let message = format!(
        "The budget of {owner}, {limit} {currency} per {period}, has {left} {currency} left, and this video is estimated \
         to cost {cost} {currency}. Send the request again after the renewal of the budget at {renewal}."
    );
    let error = ApiError::new(ErrorCode::BudgetExceeded, message);
    error
        .retry_after(over.retry_ms.div_ceil(1000))
        .final_answer()
}

/// The response with the task of an earlier identical request.
async fn replayed_response(api: &Api, task: &Task) -> Result<Response, ApiError> {
    Ok(idempotency::replayed(task_response(api, task).await?))
}

async fn task_response(api: &Api, task: &Task) -> Result<Response, ApiError> {
    let mut response = json_response(StatusCode::OK, &api.object(task).await?);
    if task.status() != Some(Status::Queued) {
        return Ok(response);
    }
    let (availability, model) = (&api.availability, &task.spec.model);
    let warning = if availability.pause(model).await.is_some() {
        PAUSED
    } else if !availability.serves(model).await {
        NOT_SERVED
    } else {
        return Ok(response);
    };
    let headers = response.headers_mut();
    headers.insert(WARNING, HeaderValue::from_static(warning));
    Ok(response)
}

/// The idempotency of a request that sends the header.
fn read_idempotency(
    headers: &HeaderMap,
    request: &SubmitRequest,
) -> Result<Option<IdempotencyKey>, ApiError> {
    let key = idempotency::key(headers)?;
    let bound = key.map(|key| Ok(idempotency::bound(key, request.fingerprint()?)));
    bound.transpose()
}

/// W3C Trace Context (<https://www.w3.org/TR/trace-context/>).
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The span of a submit to the endpoint `name`, method and route, that began at this time. An invalid
/// header counts as absent, as the specification requires.
fn submit_span(
    api: &Api,
    headers: &HeaderMap,
    name: &'static str,
    begun_ms: UnixMs,
    new: &NewTask,
) -> TaskSpan {
    let caller = only(headers, TRACEPARENT);
    let caller = caller.and_then(|value| value.to_str().ok()?.parse().ok());
    let span = api.tracer.begin(name, new.id, caller, begun_ms);
    if !span.is_recorded() {
        return span;
    }
    let mut span = span.with_role(SpanRole::Server);
    if let Some((method, route)) = name.split_once(' ') {
        span.set("http.request.method", method);
        span.set("http.route", route);
    }
    span.set("kinora.task.id", new.id.to_string());
    span.set("kinora.model", new.spec.model.clone());
    span
}
