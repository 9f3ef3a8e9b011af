//! Every route, in one place. Whatever matches none is refused in the same envelope.

use std::sync::Arc;

use axum::Router;
use axum::routing::post;
use kinora_contract::ErrorCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::error::ApiError;
use crate::state::{Api, SharedApi};
use crate::{
    cancel, content, delete, document, edit, health, list, models, openapi, read, submit,
    unsupported,
};

/// The routes that are in the OpenAPI document.
pub(crate) fn described() -> OpenApiRouter<SharedApi> {
    OpenApiRouter::with_openapi(openapi::frame())
        .routes(routes!(submit::submit, list::list))
        .routes(routes!(read::read, delete::delete))
        .routes(routes!(cancel::cancel))
        .routes(routes!(edit::edits))
        .routes(routes!(edit::remix))
        .routes(routes!(content::content))
        .routes(routes!(models::list))
        .routes(routes!(models::read))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
}

/// The whole service.
pub fn router(api: Api) -> Router {
    let text = openapi::document(&api.catalog);
    described()
        .split_for_parts()
        .0
        .route("/openapi.json", document::route(text))
        .route("/v1/videos/extensions", post(unsupported::operation))
        .route("/v1/videos/characters", post(unsupported::operation))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(Arc::new(api))
}

async fn not_found() -> ApiError {
    ApiError::new(
        ErrorCode::NotFound,
        "There is nothing at this path; see /openapi.json.",
    )
}

async fn method_not_allowed() -> ApiError {
    ApiError::new(
        ErrorCode::MethodNotAllowed,
        "This path does not take that method; see 'Allow'.",
    )
}
