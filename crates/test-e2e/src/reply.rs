//! An answer, and what must hold of every answer: refusals come in the envelope, video objects
//! keep the contract. The judging methods panic with the whole answer.

use serde_json::Value;
use ureq::http::HeaderMap;

use crate::video::{Tracker, Video};

/// The longest wait that is ever asked of a client, in seconds.
const RETRY_AFTER_MAX: u64 = 120;

/// An answer of the service.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The bytes of the body.
    pub body: Vec<u8>,
    tracker: Tracker,
}

impl Reply {
    pub(crate) fn new(status: u16, headers: HeaderMap, body: Vec<u8>, tracker: Tracker) -> Self {
        let reply = Self {
            status,
            headers,
            body,
            tracker,
        };
        reply.assert_request_id();
        reply
    }

    fn assert_request_id(&self) {
        let id = self.header("x-request-id").unwrap_or_default();
        assert!(
            id.starts_with("req_") && id.len() > 12,
            "no request id: {}",
            self.shown()
        );
    }

    /// A header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// A header's text as a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.header(name).map(|text| text.parse().unwrap())
    }

    /// For failure messages.
    pub fn shown(&self) -> String {
        let body: String = String::from_utf8_lossy(&self.body)
            .chars()
            .take(2000)
            .collect();
        format!("{} {:#?}\n{body}", self.status, self.headers)
    }

    /// The body as JSON, of whatever status.
    pub fn json(&self) -> Value {
        assert_eq!(
            self.header("content-type"),
            Some("application/json"),
            "{}",
            self.shown()
        );
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("no JSON: {error}: {}", self.shown()))
    }

    /// The JSON body of a 200.
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.shown());
        self.json()
    }

    /// The video object of a 200, judged.
    pub fn video(&self) -> Video {
        Video::judged(self.ok(), &self.tracker)
    }

    /// The list of a 200 and its video objects, judged.
    pub fn list(&self) -> (Value, Vec<Video>) {
        let list = self.ok();
        assert_eq!(list["object"], "list", "{list:#}");
        let of = |one: &Value| Video::judged(one.clone(), &self.tracker);
        let videos: Vec<Video> = list["data"].as_array().unwrap().iter().map(of).collect();
        let ends = (videos.first().map(Video::id), videos.last().map(Video::id));
        assert_eq!(
            (list["first_id"].as_str(), list["last_id"].as_str()),
            ends,
            "{list:#}"
        );
        assert!(list["has_more"].is_boolean(), "{list:#}");
        (list, videos)
    }

    /// The `error` of a refusal, after everything that must hold of any refusal was checked.
    pub fn assert_envelope(&self) -> Value {
        assert!(self.status >= 400, "not a refusal: {}", self.shown());
        let body = self.json();
        let outer: Vec<&String> = body.as_object().unwrap().keys().collect();
        assert_eq!(outer, ["error"], "{}", self.shown());
        let error = body["error"].clone();
        let mut names: Vec<&str> = error
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["code", "message", "param", "type"],
            "{}",
            self.shown()
        );
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        assert!(text("message").len() > 10, "{}", self.shown());
        assert!(
            !text("message").contains("/tmp"),
            "a path: {}",
            self.shown()
        );
        assert!(!text("code").is_empty(), "{}", self.shown());
        assert!(
            error["param"].is_null() || error["param"].is_string(),
            "{}",
            self.shown()
        );
        assert_eq!(text("type"), kind_of(self.status), "{}", self.shown());
        self.assert_refusal_headers();
        error
    }

    fn assert_refusal_headers(&self) {
        let challenge = (self.status == 401).then_some("Bearer");
        assert_eq!(
            self.header("www-authenticate"),
            challenge,
            "{}",
            self.shown()
        );
        // Waiting does not help a project that keeps too much: it has to delete.
        if self.json()["error"]["code"] == "storage_quota_exceeded" {
            assert_eq!(
                self.header("x-should-retry"),
                Some("false"),
                "{}",
                self.shown()
            );
            assert_eq!(self.header("retry-after"), None, "{}", self.shown());
        } else if self.json()["error"]["code"] == "budget_exceeded" {
            // Until the renewal, which no SDK should wait for by itself.
            assert_eq!(
                self.header("x-should-retry"),
                Some("false"),
                "{}",
                self.shown()
            );
            let seconds = self.number("retry-after");
            assert!(seconds.is_some_and(|one| one > 0), "{}", self.shown());
        } else if matches!(self.status, 429 | 503) {
            let seconds = self.number("retry-after");
            let honest = seconds.is_some_and(|one| (1..=RETRY_AFTER_MAX).contains(&one));
            assert!(honest, "{}", self.shown());
        }
        assert_eq!(
            self.header("allow").is_some(),
            self.status == 405,
            "{}",
            self.shown()
        );
    }

    /// Asserts a refusal with this status and code, and returns its error.
    pub fn refused(&self, status: u16, code: &str) -> Value {
        let error = self.assert_envelope();
        let found = (self.status, error["code"].as_str());
        assert_eq!(found, (status, Some(code)), "{}", self.shown());
        error
    }

    /// Asserts a refusal with this status, code and param, and returns its error.
    pub fn refused_for(&self, status: u16, code: &str, param: Option<&str>) -> Value {
        let error = self.refused(status, code);
        assert_eq!(error["param"].as_str(), param, "{}", self.shown());
        error
    }
}

/// The `type` that goes with a status.
fn kind_of(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}
