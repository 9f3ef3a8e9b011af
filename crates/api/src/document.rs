//! `GET /openapi.json`: the document of the router's routes, with its entity tag.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use kinora_contract::hex;
use sha2::{Digest, Sha256};

use crate::conditional::Condition;
use crate::state::SharedApi;

/// The route that serves the JSON document that `write` returns. Most processes are never asked for it, so it is written
/// at the first request.
pub(crate) fn route(write: impl FnOnce() -> String + Send + 'static) -> MethodRouter<SharedApi> {
    let document = Arc::new(LazyLock::new(|| Document::new(write())));
    get(async move |headers: HeaderMap| document.answer(&headers))
}

#[derive(Clone, Debug)]
struct Document {
    text: Bytes,
    /// Includes its quotes, as in `"abc"`.
    etag: String,
}

impl Document {
    fn new(text: String) -> Self {
        let digits = hex::text(&Sha256::digest(&text));
        Self {
            text: text.into(),
            etag: format!("\"{digits}\""),
        }
    }

    fn answer(&self, asked: &HeaderMap) -> Response {
        let mut response = match Condition::of(asked, &self.etag).refused() {
            None => {
                let mut whole = Body::from(self.text.clone()).into_response();
                let json = HeaderValue::from_static("application/json");
                whole.headers_mut().insert(header::CONTENT_TYPE, json);
                whole
            }
            Some(refused) if refused.status() != StatusCode::NOT_MODIFIED => return refused,
            Some(not_modified) => not_modified,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_the_same_bytes_and_a_known_document_is_not_sent_again() {
        let document = Document::new("{}".to_owned());
        let mut asked = HeaderMap::new();
        let [first, second] = [(); 2].map(|()| document.answer(&asked));
        assert_eq!(first.status(), StatusCode::OK);
        let etag = first.headers()[header::ETAG].clone();
        assert_eq!(second.headers()[header::ETAG], etag);
        assert_eq!(first.headers()[header::CONTENT_TYPE], "application/json");

        asked.insert(header::IF_NONE_MATCH, etag.clone());
        let known = document.answer(&asked);
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(known.headers()[header::ETAG], etag);
        asked.insert(header::IF_MATCH, HeaderValue::from_static("\"other\""));
        let other = document.answer(&asked);
        assert_eq!(other.status(), StatusCode::PRECONDITION_FAILED);
    }
}
