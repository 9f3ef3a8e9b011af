//! `/` and `/studio/…`: the web page of `kinora-studio`. A browser that asks `/` for HTML gets the
//! page; other clients get a short JSON object that names the API, its document and the page.
//! `/studio/sign-in` takes the code of a sign-in link.

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, post};
use kinora_studio::{File, POLICY};
use serde::Serialize;

use crate::conditional::{is_known, listed};
use crate::error::ApiError;
use crate::responses::JsonResponse;
use crate::sign_in::sign_in;
use crate::state::SharedApi;

/// `Cache-Control` of the page. A new version of the service changes it: browsers revalidate it,
/// but download it once.
const REVALIDATED: &str = "no-cache";
/// `Cache-Control` of files whose address changes with their content.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Adds `/` to `routes`, and the page if the service `has_page`.
pub(crate) fn mount(routes: Router<SharedApi>, has_page: bool) -> Router<SharedApi> {
    let front: MethodRouter<SharedApi> =
        any(move |method: Method, headers: HeaderMap| root(method, headers, has_page));
    let routes = routes.route("/", front);
    if has_page {
        routes
            .route("/studio/{*path}", any(file))
            .route("/studio/sign-in", post(sign_in))
    } else {
        routes
    }
}

async fn root(method: Method, headers: HeaderMap, has_page: bool) -> Response {
    // Browsers list `text/html` by name. The `*/*` of curl and SDKs does not count, so that they
    // get JSON.
    let wants_page = accepts(&headers, &header::ACCEPT, "text/html");
    if !method.is_safe() || wants_page && !has_page {
        return ApiError::no_such_path("/").into_response();
    }
    if wants_page {
        return send(kinora_studio::page(), REVALIDATED, &headers);
    }
    let document = RootDocument {
        name: "Kinora",
        api: "/v1/videos",
        models: "/v1/models",
        openapi: "/openapi.json",
        studio: has_page.then_some("/ in a browser"),
    };
    let mut response = JsonResponse(document).into_response();
    // The same address has another answer for browsers.
    let vary = HeaderValue::from_static("accept");
    response.headers_mut().insert(header::VARY, vary);
    response
}

/// The addresses of the API and its page, for programs and people that query the bare address.
#[derive(Debug, Serialize)]
struct RootDocument {
    name: &'static str,
    api: &'static str,
    models: &'static str,
    openapi: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    studio: Option<&'static str>,
}

async fn file(
    method: Method,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Response {
    let found = path.ok().and_then(|path| kinora_studio::find(&path));
    match found.filter(|_| method.is_safe()) {
        Some(file) => send(file, IMMUTABLE, &headers),
        None => ApiError::no_such_path("").into_response(),
    }
}

fn send(file: File, caching: &'static str, asked: &HeaderMap) -> Response {
    let is_packed = accepts(asked, &header::ACCEPT_ENCODING, "gzip");
    // The two forms of a file differ in their bytes, so each needs its own tag.
    let form = if is_packed { "-gzip" } else { "" };
    let etag = format!("\"{}{form}\"", kinora_studio::version());
    let mut response = match is_known(asked, &etag) {
        Ok(false) => Body::from(if is_packed { file.packed } else { file.plain }).into_response(),
        Ok(true) => StatusCode::NOT_MODIFIED.into_response(),
        Err(refused) => return refused.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, file.media_type()),
        (header::CACHE_CONTROL, caching),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        // A page that opens this one gets no handle of its window.
        (OPENER_POLICY, "same-origin"),
        (header::VARY, "accept, accept-encoding"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if is_packed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}

/// Whether the list header `name` contains `wanted` with a weight other than 0.
fn accepts(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    listed(headers, name).any(|member| {
        let mut parts = member.split(';').map(str::trim);
        let is_wanted = parts
            .next()
            .is_some_and(|value| value.eq_ignore_ascii_case(wanted));
        is_wanted && parts.all(|part| !matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(pairs: &[(header::HeaderName, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().cloned();
        pairs
            .map(|(name, value)| (name, HeaderValue::from_static(value)))
            .collect()
    }

    const HTML: (header::HeaderName, &str) =
        (header::ACCEPT, "text/html,application/xml;q=0.9,*/*;q=0.8");

    #[tokio::test]
    async fn only_a_browser_gets_the_page() {
        for (method, accept, status) in [
            (Method::GET, "text/html,*/*;q=0.8", 200),
            (Method::HEAD, "application/xml;q=0.9, TEXT/HTML;q=0.5", 200),
            (Method::POST, "text/html", 404),
            (Method::POST, "*/*", 404),
        ] {
            let response = root(method.clone(), asking(&[(header::ACCEPT, accept)]), true).await;
            assert_eq!(response.status(), status, "{method} {accept}");
        }
    }

    #[tokio::test]
    async fn other_clients_are_told_where_everything_is() {
        for (accept, has_page) in [
            ("*/*", true),
            ("application/json", true),
            ("text/html;q=0", true),
            ("*/*", false),
        ] {
            let asked = asking(&[(header::ACCEPT, accept)]);
            let response = root(Method::GET, asked, has_page).await;
            assert_eq!(response.status(), 200, "{accept}");
            assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
            let body = axum::body::to_bytes(response.into_body(), 1000).await;
            let told: serde_json::Value = serde_json::from_slice(&body.unwrap()).unwrap();
            assert_eq!(told["api"], "/v1/videos");
            assert_eq!(told["openapi"], "/openapi.json");
            assert_eq!(told.get("studio").is_some(), has_page);
        }
        let page = root(Method::GET, asking(&[HTML]), false).await;
        assert_eq!(page.status(), 404);
    }

    #[tokio::test]
    async fn a_known_page_is_not_sent_again_and_each_form_has_a_tag_of_its_own() {
        let plain = root(Method::GET, asking(&[HTML]), true).await;
        let gzip = (header::ACCEPT_ENCODING, "gzip, br");
        let packed = root(Method::GET, asking(&[HTML, gzip.clone()]), true).await;
        let etag = |response: &Response| response.headers()[header::ETAG].clone();
        assert_ne!(etag(&plain), etag(&packed));
        assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip");
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
        let mut again = asking(&[HTML, gzip]);
        again.insert(header::IF_NONE_MATCH, etag(&packed));
        let known = root(Method::GET, again, true).await;
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(known.headers()[header::CACHE_CONTROL], REVALIDATED);
        assert_eq!(known.headers()[header::CONTENT_SECURITY_POLICY], POLICY);
    }

    #[tokio::test]
    async fn a_file_is_kept_and_an_unknown_one_is_not_found() {
        let path = format!("{}/app.js", kinora_studio::version());
        let found = file(Method::GET, Ok(Path(path)), asking(&[])).await;
        assert_eq!(found.status(), StatusCode::OK);
        assert_eq!(found.headers()[header::CACHE_CONTROL], IMMUTABLE);
        assert_eq!(
            found.headers()[header::CONTENT_TYPE],
            "text/javascript; charset=utf-8"
        );
        let old = Ok(Path("0123456789abcdef/app.js".to_owned()));
        let old = file(Method::GET, old, asking(&[])).await;
        assert_eq!(old.status(), StatusCode::NOT_FOUND);
    }
}
