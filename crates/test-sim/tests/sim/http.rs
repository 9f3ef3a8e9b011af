//! Requests to the real router, without a socket between, and their answers.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use bytes::Bytes;
use kinora_contract::KeyText;
use serde_json::Value;
use tower_service::Service;

/// A request, complete.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) body: Option<String>,
}

impl Call {
    pub(crate) fn new(method: &'static str, path: String) -> Self {
        Self {
            method,
            path,
            idempotency_key: None,
            body: None,
        }
    }

    /// Sends it with `key`.
    pub(crate) async fn send(self, router: Router, key: KeyText) -> Answer {
        let mut request = Request::builder()
            .method(self.method)
            .uri(&self.path)
            .header("authorization", format!("Bearer {}", key.reveal()))
            .header("content-type", "application/json");
        if let Some(key) = &self.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let body = self.body.map_or_else(Body::empty, Body::from);
        let mut router = router;
        let Ok(response) = router.call(request.body(body).unwrap()).await;
        let (head, body) = response.into_parts();
        Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body: to_bytes(body, usize::MAX).await.ok(),
        }
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// `None` when it broke off.
    pub(crate) body: Option<Bytes>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(self.body.as_deref().unwrap_or_default())
            .unwrap_or_else(|error| panic!("{error}: not JSON: {self:?}"))
    }

    /// The error's code; of a 200 an empty one.
    pub(crate) fn code(&self) -> String {
        if self.status == 200 {
            return String::new();
        }
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub(crate) fn has(&self, header: &str) -> bool {
        self.headers.contains_key(header)
    }
}
