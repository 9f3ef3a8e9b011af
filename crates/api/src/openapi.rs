//! The OpenAPI document, generated from handlers and types and refined by the contract's tables,
//! and the route that serves it. `docs/openapi.json` is its golden copy, so every change of the API
//! shows up as a diff.

use std::sync::{Arc, LazyLock};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use kinora_contract::webhook::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER};
use kinora_contract::{ErrorBody, ModelCatalog, hex};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use utoipa::OpenApi as _;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi, Server};

use crate::conditional::is_known;
use crate::responses::json_bytes;
use crate::state::SharedApi;

mod exact;

/// The document's frame; paths and schemas come with the routes.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Kinora",
        description = "Self-hosted asynchronous video generation: submit a task, poll it, get an MP4.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(ErrorBody)),
    tags(
        (name = "videos", description = "Video tasks."),
        (name = "files", description = "Uploaded pictures and sounds."),
        (name = "models", description = "The served models."),
        (name = "usage", description = "Usage, costs and budgets."),
        (name = "operations", description = "For operators of the service."),
        (name = "webhooks", description = "What the service posts to its receivers."),
        (name = "health", description = "For load balancers; without a key.")
    )
)]
struct DocumentFrame;

/// The frame with its security scheme; the server is the one that serves the document.
pub(crate) fn frame() -> OpenApi {
    let mut document = DocumentFrame::openapi();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    document.servers = Some(vec![Server::new("/")]);
    document
}

/// The whole document for the routes of `described` and the models of `catalog`, as JSON text.
pub(crate) fn text(described: OpenApi, catalog: &ModelCatalog) -> String {
    let mut document = serde_json::to_value(described).unwrap_or_else(|error| {
        tracing::error!(%error, "OpenAPI document not serialised");
        Value::Null
    });
    // After the generation: the derives know types, but not the models of this service, on which
    // lists of values and bounds depend.
    exact::make_exact(&mut document, catalog);
    add_webhooks(&mut document);
    format!("{document:#}")
}

/// The route that serves the JSON document that `write` returns. Most processes are never asked for it, so it is written
/// at the first request.
pub(crate) fn route(write: impl FnOnce() -> String + Send + 'static) -> MethodRouter<SharedApi> {
    let document = Arc::new(LazyLock::new(|| ServedDocument::new(write())));
    get(async move |headers: HeaderMap| document.respond(&headers))
}

#[derive(Clone, Debug)]
struct ServedDocument {
    text: Bytes,
    /// Includes its quotes, as in `"abc"`.
    etag: String,
}

impl ServedDocument {
    fn new(text: String) -> Self {
        let digits = hex::text(&Sha256::digest(&text));
        Self {
            text: text.into(),
            etag: format!("\"{digits}\""),
        }
    }

    fn respond(&self, asked: &HeaderMap) -> Response {
        let mut response = match is_known(asked, &self.etag) {
            Ok(false) => json_bytes(StatusCode::OK, self.text.clone()),
            Ok(true) => StatusCode::NOT_MODIFIED.into_response(),
            Err(refused) => return refused.into_response(),
        };
        // A new version of the service changes the document: clients revalidate, but download it
        // once.
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Ok(etag) = HeaderValue::from_str(&self.etag) {
            headers.insert(header::ETAG, etag);
        }
        response
    }
}

/// An event that ends a task.
struct DocumentedEvent {
    /// Its type, and its name in the document.
    kind: &'static str,
    /// The name of its schema.
    schema: &'static str,
    summary: &'static str,
    description: &'static str,
}

const EVENTS: [DocumentedEvent; 2] = [
    DocumentedEvent {
        kind: "video.completed",
        schema: "VideoCompletedEvent",
        summary: "A video task is completed.",
        description: "`data` is the task object of the moment of the attempt, with `result_url`.",
    },
    DocumentedEvent {
        kind: "video.failed",
        schema: "VideoFailedEvent",
        summary: "A video task has failed.",
        description: "`data` is the task object with `error`; a cancelled task has `error.code` `cancelled`.",
    },
];

/// Adds the events to `document`, with the schemas of their bodies.
fn add_webhooks(document: &mut Value) {
    let posted = EVENTS.iter().map(|event| {
        let post = json!({"post": operation(event)});
        (event.kind.to_owned(), post)
    });
    document["webhooks"] = Value::Object(posted.collect::<Map<_, _>>());
    for event in &EVENTS {
        document["components"]["schemas"][event.schema] = schema(event);
    }
}

fn operation(event: &DocumentedEvent) -> Value {
    let reference = format!("#/components/schemas/{}", event.schema);
    json!({
        "tags": ["webhooks"],
        "summary": event.summary,
        "description": event.description,
        "operationId": event.kind.replace('.', "_"),
        // The signature proves the sender; it carries no API key.
        "security": [],
        "parameters": [
            header(ID_HEADER, "The event's id, the same at each attempt at its delivery."),
            header(TIMESTAMP_HEADER, "When this attempt was made, in Unix seconds."),
            header(
                SIGNATURE_HEADER,
                "Signatures by Standard Webhooks, separated by spaces: `v1,` and the base64 of HMAC-SHA256.",
            ),
        ],
        "requestBody": {
            "required": true,
            "content": {"application/json": {"schema": {"$ref": reference}}},
        },
        "responses": {
            "2XX": {"description": "The event has arrived. The service does not read the body."},
            "410": {"description": "The receiver is gone: the service disables the webhook."},
            "default": {"description": "The service makes the delivery again later."},
        },
    })
}

fn header(name: &str, description: &str) -> Value {
    json!({
        "name": name, "in": "header", "required": true, "description": description,
        "schema": {"type": "string"},
    })
}

fn schema(event: &DocumentedEvent) -> Value {
    json!({
        "type": "object",
        "description": format!("The event `{}`, in the form of OpenAI's.", event.kind),
        "required": ["id", "object", "created_at", "type", "data"],
        "properties": {
            "id": {"type": "string", "description": "The event's id, also in `webhook-id`."},
            "object": {"type": "string", "enum": ["event"], "description": "Always `event`."},
            "created_at": {
                "type": "integer", "format": "int64", "minimum": 0,
                "description": "When the task ended, Unix seconds.",
            },
            "type": {"type": "string", "enum": [event.kind], "description": "What has happened."},
            "data": {"$ref": "#/components/schemas/Video", "description": "The task."},
        },
    })
}

#[cfg(test)]
mod document_tests {
    use super::*;

    #[test]
    fn every_answer_is_the_same_bytes_and_a_known_document_is_not_sent_again() {
        let document = ServedDocument::new("{}".to_owned());
        let mut asked = HeaderMap::new();
        let [first, second] = [(); 2].map(|()| document.respond(&asked));
        assert_eq!(first.status(), StatusCode::OK);
        let etag = first.headers()[header::ETAG].clone();
        assert_eq!(second.headers()[header::ETAG], etag);
        assert_eq!(first.headers()[header::CONTENT_TYPE], "application/json");

        asked.insert(header::IF_NONE_MATCH, etag.clone());
        let known = document.respond(&asked);
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(known.headers()[header::ETAG], etag);
        asked.insert(header::IF_MATCH, HeaderValue::from_static("\"other\""));
        let other = document.respond(&asked);
        assert_eq!(other.status(), StatusCode::PRECONDITION_FAILED);
    }
}
