//! The events that the service posts to webhooks, as the `webhooks` of OpenAPI 3.1. No route of the service has them, so
//! they are added to the generated document.

use kinora_contract::webhook::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER};
use serde_json::{Map, Value, json};

/// An event that ends a task.
struct Event {
    /// Its type, and its name in the document.
    kind: &'static str,
    /// The name of its schema.
    schema: &'static str,
    summary: &'static str,
    description: &'static str,
}

const EVENTS: [Event; 2] = [
    Event {
        kind: "video.completed",
        schema: "VideoCompletedEvent",
        summary: "A video task is completed.",
        description: "`data` is the task object of the moment of the attempt, with `result_url`.",
    },
    Event {
        kind: "video.failed",
        schema: "VideoFailedEvent",
        summary: "A video task has failed.",
        description: "`data` is the task object with `error`; a cancelled task has `error.code` `cancelled`.",
    },
];

/// Adds the events to `document`, with the schemas of their bodies.
pub(super) fn add(document: &mut Value) {
    let posted = EVENTS.iter().map(|event| {
        let post = json!({"post": operation(event)});
        (event.kind.to_owned(), post)
    });
    document["webhooks"] = Value::Object(posted.collect::<Map<_, _>>());
    for event in &EVENTS {
        document["components"]["schemas"][event.schema] = schema(event);
    }
}

fn operation(event: &Event) -> Value {
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

fn schema(event: &Event) -> Value {
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
