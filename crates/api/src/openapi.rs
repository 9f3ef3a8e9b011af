//! The OpenAPI document, generated from the handlers and types. `docs/openapi.json` is its
//! golden copy: a change of the contract is a visible difference.

use std::collections::BTreeMap;

use kinora_contract::{ErrorBody, ErrorCode};
use utoipa::openapi::response::Response as ResponseDoc;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, OpenApi as _};

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
        (name = "models", description = "What is served."),
        (name = "health", description = "For load balancers; without a key.")
    )
)]
struct Frame;

/// The frame with its security scheme.
pub(crate) fn frame() -> OpenApi {
    let mut document = Frame::openapi();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    document
}

/// The whole document.
pub fn document() -> OpenApi {
    crate::router::described().split_for_parts().1
}

/// Every refusal, grouped by status, with the codes that it may carry.
pub(crate) struct Refusals;

impl IntoResponses for Refusals {
    fn responses() -> BTreeMap<String, RefOr<ResponseDoc>> {
        let mut codes: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
        for code in ErrorCode::ALL {
            codes
                .entry(code.http_status())
                .or_default()
                .push(code.as_str());
        }
        let body = ContentBuilder::new()
            .schema(Some(Ref::from_schema_name("ErrorBody")))
            .build();
        let response = |codes: Vec<&str>| {
            ResponseBuilder::new()
                .description(format!("Refused: `{}`.", codes.join("`, `")))
                .content("application/json", body.clone())
                .build()
        };
        codes
            .into_iter()
            .map(|(status, codes)| (status.to_string(), RefOr::T(response(codes))))
            .collect()
    }
}
