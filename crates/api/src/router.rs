//! Every route, in one place. Unknown paths and methods get the same error envelope.

use std::sync::Arc;

use axum::Router;
use axum::http::Uri;
use axum::routing::{get, post};
use kinora_contract::{ErrorCode, ModelCatalog};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::error::ApiError;
use crate::extract::WriteKey;
use crate::health::HealthState;
use crate::state::{Api, SharedApi};
use crate::{
    cancel, content, create_file, delete, edit, events, files, health, list, models, openapi,
    operations, read, studio, submit, usage,
};

/// The routes in the OpenAPI document.
fn described() -> OpenApiRouter<SharedApi> {
    OpenApiRouter::with_openapi(openapi::frame())
        .routes(routes!(submit::submit, list::list))
        .routes(routes!(read::read, delete::delete))
        .routes(routes!(events::events))
        .routes(routes!(events::task_events))
        .routes(routes!(cancel::cancel))
        .routes(routes!(cancel::cancel_queued))
        .routes(routes!(edit::edits))
        .routes(routes!(edit::remix))
        .routes(routes!(content::content))
        .routes(routes!(create_file::create, files::list))
        .routes(routes!(files::read, files::delete))
        .routes(routes!(files::content))
        .routes(routes!(models::list))
        .routes(routes!(models::read))
        .routes(routes!(usage::read))
        .routes(routes!(operations::read))
        .routes(routes!(operations::pause))
        .routes(routes!(operations::resume))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
}

/// The whole service.
pub fn router(api: Api) -> Router {
    let (routes, described) = described().split_for_parts();
    let catalog = api.catalog.clone();
    let document = crate::openapi::route(move || openapi::text(described, &catalog));
    let routes = studio::mount(routes, api.settings.studio);
    routes
        .route("/openapi.json", document)
        .route("/v1/videos/extensions", post(unsupported))
        .route("/v1/videos/characters", post(unsupported))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(Arc::new(api))
}

/// The health listener of a process that runs tasks and serves no client: `/healthz` and `/readyz`.
pub fn health_router(health: HealthState) -> Router {
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(health)
}

/// The OpenAPI document of a service with the models of `catalog`, as JSON text.
pub fn document(catalog: &ModelCatalog) -> String {
    openapi::text(described().split_for_parts().1, catalog)
}

async fn not_found(uri: Uri) -> ApiError {
    ApiError::no_such_path(uri.path())
}

async fn method_not_allowed() -> ApiError {
    ApiError::new(
        ErrorCode::MethodNotAllowed,
        "Method not allowed; see the Allow header.",
    )
}

/// Refuses routes of OpenAI that this service does not offer: a clear error instead of a bare 404.
async fn unsupported(WriteKey(_): WriteKey) -> ApiError {
    ApiError::new(
        ErrorCode::UnsupportedOperation,
        "None of the served models supports this operation.",
    )
}
