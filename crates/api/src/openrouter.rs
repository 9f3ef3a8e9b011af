//! Answers for OpenRouter's clients. They call the endpoints that OpenAI's SDKs call, but take no other
//! status than 202 for an accepted task, an error of a task only as text, and numbers as codes of refusals.
//! Nothing else differs for them, and nothing at all for others.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::error::ApiError;

/// In the `User-Agent` of its SDKs: `speakeasy-sdk/python … openrouter`, `… @openrouter/sdk`. Their requests
/// have no other mark. Its provider for the AI SDK does not send its name, and needs no 202.
const NAME: &str = "openrouter";

/// Whether one of OpenRouter's clients sent a request with `headers`.
pub(crate) fn is_client(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT);
    agent
        .and_then(|agent| agent.to_str().ok())
        .is_some_and(|agent| agent.contains(NAME))
}

/// `response` to a request with `method` as OpenRouter's clients expect it.
pub(crate) async fn adapt(method: &Method, response: Response) -> Response {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    if content_type.is_none_or(|kind| kind != "application/json") {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // JSON answers are whole in memory, and bounded where they are made.
    let bytes = match to_bytes(body, usize::MAX).await {
        Ok(bytes) => bytes,
        Err(error) => return ApiError::internal(error).into_response(),
    };
    let Ok(Value::Object(mut object)) = serde_json::from_slice(&bytes) else {
        return Response::from_parts(parts, Body::from(bytes));
    };
    parts.status = adapt_object(method, parts.status, &mut object);
    // The router has set it to the length before.
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(Value::Object(object).to_string()))
}

/// Changes the object of an answer, and returns the answer's status.
fn adapt_object(
    method: &Method,
    status: StatusCode,
    object: &mut Map<String, Value>,
) -> StatusCode {
    if let Some(Value::Object(refusal)) = object.get_mut("error")
        && !status.is_success()
    {
        let code = refusal.insert("code".to_owned(), json!(status.as_u16()));
        refusal.insert("metadata".to_owned(), json!({ "code": code }));
        return status;
    }
    if object.get("object").is_none_or(|kind| kind != "video") {
        return status;
    }
    if let Some(message) = object.get("fail_reason").cloned() {
        object.insert("error".to_owned(), message);
    }
    // A cancel is a POST that returns a task as well; its task has ended, so nothing was accepted.
    let is_accepted = method == Method::POST && !object.contains_key("completed_at");
    if is_accepted {
        StatusCode::ACCEPTED
    } else {
        status
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn adapted(method: &Method, status: u16, object: Value) -> (u16, Value) {
        let Value::Object(mut object) = object else {
            panic!("no object: {object}");
        };
        let status = StatusCode::from_u16(status).unwrap();
        let status = adapt_object(method, status, &mut object);
        (status.as_u16(), Value::Object(object))
    }

    #[test]
    fn the_clients_are_known_by_their_agents() {
        for (agent, expected) in [
            ("speakeasy-sdk/python 1.3.84 2.914.0 1.0.0 openrouter", true),
            (
                "speakeasy-sdk/typescript 1.3.19 2.914.0 1.0.0 @openrouter/sdk",
                true,
            ),
            ("OpenAI/Python 3.52.0", false),
            ("", false),
        ] {
            let headers = [(header::USER_AGENT, HeaderValue::from_static(agent))];
            assert_eq!(
                is_client(&HeaderMap::from_iter(headers)),
                expected,
                "{agent}"
            );
        }
        assert!(!is_client(&HeaderMap::new()));
    }

    #[test]
    fn an_accepted_task_is_202_and_its_failure_is_text() {
        let queued = json!({"object": "video", "status": "queued"});
        assert_eq!(
            adapted(&Method::POST, 200, queued.clone()),
            (202, queued.clone())
        );
        assert_eq!(adapted(&Method::GET, 200, queued.clone()), (200, queued));
        let failed = json!({
            "object": "video",
            "completed_at": 1,
            "error": {"code": "cancelled", "message": "The task was cancelled."},
            "fail_reason": "The task was cancelled.",
        });
        for method in [Method::GET, Method::POST] {
            let (status, object) = adapted(&method, 200, failed.clone());
            assert_eq!((status, &object["error"]), (200, &object["fail_reason"]));
        }
        let list = json!({"object": "list", "data": []});
        assert_eq!(adapted(&Method::GET, 200, list.clone()), (200, list));
    }

    #[test]
    fn a_refusal_has_its_status_as_the_code_and_keeps_ours() {
        let error = json!({"code": "unknown_parameter", "message": "Unknown parameter: 'x'.", "param": "x"});
        let (status, object) = adapted(&Method::POST, 400, json!({ "error": error }));
        let error = json!({
            "code": 400,
            "message": "Unknown parameter: 'x'.",
            "param": "x",
            "metadata": {"code": "unknown_parameter"},
        });
        assert_eq!((status, object), (400, json!({ "error": error })));
    }
}
