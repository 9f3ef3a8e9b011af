//! The OpenAPI document, generated from handlers and types and refined by the contract's tables.
//! `docs/openapi.json` is its golden copy, so every change of the API shows up as a diff.

mod exact;
mod webhooks;

use kinora_contract::{Catalog, ErrorBody};
use serde_json::Value;
use utoipa::OpenApi as _;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi, Server};

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
        (name = "models", description = "The served models."),
        (name = "operations", description = "For operators of the service."),
        (name = "webhooks", description = "What the service posts to its receivers."),
        (name = "health", description = "For load balancers; without a key.")
    )
)]
struct Frame;

/// The frame with its security scheme; the server is the one that serves the document.
pub(crate) fn frame() -> OpenApi {
    let mut document = Frame::openapi();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    document.servers = Some(vec![Server::new("/")]);
    document
}

/// The whole document for the routes of `described` and the models of `catalog`, as JSON text.
pub(crate) fn text(described: OpenApi, catalog: &Catalog) -> String {
    let mut document = serde_json::to_value(described).unwrap_or_else(|error| {
        tracing::error!(%error, "OpenAPI document not serialised");
        Value::Null
    });
    exact::make_exact(&mut document, catalog);
    webhooks::add(&mut document);
    format!("{document:#}")
}
