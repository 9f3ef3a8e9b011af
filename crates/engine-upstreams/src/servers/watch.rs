//! Lets an operator watch each exchange with a server: what was sent and what came back, without keys and without
//! the bytes of media.

use std::fmt;

use bytes::Bytes;
use hyper::Request;
use hyper::header::HeaderMap;
use serde_json::Value;

use super::cause::{CallError, chain};
use super::key::ServerKey;

/// Longer answers are cut.
const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// Longer texts in a body are cut: `data:` URLs and base64.
const TEXT_CHARS_MAX: usize = 400;
/// What is left of them.
const TEXT_CHARS_LEFT: usize = 60;

/// Receives every exchange with a server, after it ended.
pub trait ExchangeWatcher: Send + Sync + fmt::Debug {
    /// An exchange ended. Called on the task that made it: return soon.
    fn exchanged(&self, exchange: &WatchedExchange);
}

/// One exchange. No header or text in it is a key of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedExchange {
    /// `POST`.
    pub method: String,
    /// The whole URL.
    pub url: String,
    /// Headers, in the order in which they were sent; a secret value is `***`.
    pub headers: Vec<(String, String)>,
    /// The body as text: long texts of JSON are cut, files of a form are only counted.
    pub body: String,
    /// What came back.
    pub answer: Result<WatchedAnswer, String>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedAnswer {
    /// The HTTP status.
    pub status: u16,
    /// Headers; that of a cookie is `***`.
    pub headers: Vec<(String, String)>,
    /// The first 16 KiB of the body as text; empty for the bytes of a film.
    pub body: String,
}

impl WatchedExchange {
    /// The exchange that begins with `request`, whose body is shown as `form` if it is one.
    pub(crate) fn begin(request: &Request<Bytes>, form: Option<&str>) -> Self {
        Self {
            method: request.method().to_string(),
            url: request.uri().to_string(),
            headers: shown_headers(request.headers()),
            body: form.map_or_else(|| shown_json(request.body()), str::to_owned),
            answer: Err("no answer".to_owned()),
        }
    }

    /// Removes the key from every text that a server or a client wrote.
    pub(crate) fn conceal(&mut self, key: &ServerKey) {
        key.conceal(&mut self.url);
        key.conceal(&mut self.body);
        match &mut self.answer {
            Ok(answer) => {
                let headers = answer.headers.iter_mut();
                headers.for_each(|(_, value)| key.conceal(value));
                key.conceal(&mut answer.body);
            }
            Err(error) => key.conceal(error),
        }
    }

    /// The same with its answer.
    pub(crate) fn end(mut self, answer: Result<(u16, &HeaderMap, &[u8]), &CallError>) -> Self {
        self.answer = match answer {
            Ok((status, headers, body)) => Ok(WatchedAnswer {
                status,
                headers: shown_headers(headers),
                body: cut_bytes(body),
            }),
            Err(error) => Err(chain(error)),
        };
        self
    }
}

fn shown_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let shown = headers.iter().map(|(name, value)| {
        let is_secret = value.is_sensitive() || name == hyper::header::SET_COOKIE;
        let text = match is_secret {
            true => "***".to_owned(),
            false => String::from_utf8_lossy(value.as_bytes()).into_owned(),
        };
        (name.to_string(), text)
    });
    shown.collect()
}

fn cut_bytes(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(ANSWER_BYTES_MAX)]).into_owned();
    match body.len().checked_sub(ANSWER_BYTES_MAX) {
        None | Some(0) => text,
        Some(more) => format!("{text}… ({more} bytes more)"),
    }
}

fn shown_json(body: &[u8]) -> String {
    match serde_json::from_slice::<Value>(body) {
        Ok(mut value) => {
            cut_texts(&mut value);
            value.to_string()
        }
        Err(_) => cut_bytes(body),
    }
}

fn cut_texts(value: &mut Value) {
    match value {
        Value::String(text) => *text = cut_text(text),
        Value::Array(items) => items.iter_mut().for_each(cut_texts),
        Value::Object(entries) => entries.values_mut().for_each(cut_texts),
        _ => {}
    }
}

/// The beginning of a text that is a long `data:` URL or base64; any other text whole.
pub(crate) fn cut_text(text: &str) -> String {
    let count = text.chars().count();
    if count <= TEXT_CHARS_MAX || text.contains(char::is_whitespace) {
        return text.to_owned();
    }
    let head: String = text.chars().take(TEXT_CHARS_LEFT).collect();
    format!("{head}… ({count} characters)")
}
