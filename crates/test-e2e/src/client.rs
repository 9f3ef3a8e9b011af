//! A small HTTP client that checks while it speaks: a video object or a refusal that breaks the
//! contract fails the test on the spot, whatever the test was about.

use std::time::Duration;

use serde_json::Value;
use ureq::http::Request as HttpRequest;
use ureq::http::request::Parts;

use crate::events::Events;
use crate::faults;
use crate::reply::Reply;
use crate::video::{Tracker, Video};
use crate::wait::{PATIENCE, until};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const BOUNDARY: &str = "kinora-e2e-boundary";
/// Above every file that a test makes.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Speaks to one service, with at most one key.
#[derive(Clone, Debug)]
pub struct Client {
    agent: ureq::Agent,
    base_url: String,
    key: Option<String>,
    tracker: Tracker,
}

impl Client {
    pub(crate) fn new(base_url: String, tracker: Tracker) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(REQUEST_TIMEOUT))
            .allow_non_standard_methods(true)
            .build();
        Self {
            agent: config.into(),
            base_url,
            key: None,
            tracker,
        }
    }

    /// The same with this key.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self {
            key: Some(key.to_owned()),
            ..self.clone()
        }
    }

    /// The same, without what was seen before: for answers that come in any order.
    #[must_use]
    pub fn forgetful(&self) -> Self {
        Self {
            tracker: Tracker::default(),
            ..self.clone()
        }
    }

    /// The same through another address, as of a proxy.
    #[must_use]
    pub fn at(&self, base_url: &str) -> Self {
        Self {
            base_url: base_url.to_owned(),
            ..self.clone()
        }
    }

    /// Its key; panics when it has none.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap()
    }

    /// What its addresses begin with.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// A request to be filled in. `target` is a path, or an address of this service.
    pub fn request(&self, method: &str, target: &str) -> Request<'_> {
        let path = target.strip_prefix(&self.base_url).unwrap_or(target);
        let url = format!("{}{path}", self.base_url);
        let mut head = HttpRequest::builder().method(method).uri(url);
        if let Some(key) = &self.key {
            head = head.header("authorization", format!("Bearer {key}"));
        }
        Request {
            client: self,
            head,
            body: None,
        }
    }

    /// One answer; an error when it breaks off.
    fn answer(&self, head: Parts, body: Option<&[u8]>) -> Result<Reply, ureq::Error> {
        let answer = match body {
            Some(body) => self.agent.run(HttpRequest::from_parts(head, body)),
            None => self.agent.run(HttpRequest::from_parts(head, ())),
        };
        let (head, mut body) = answer?.into_parts();
        let limited = body.with_config().limit(ANSWER_BYTES_MAX);
        let body = limited.read_to_vec()?;
        let (status, tracker) = (head.status.as_u16(), self.tracker.clone());
        Ok(Reply::new(status, head.headers, body, tracker))
    }

    /// `GET`.
    pub fn get(&self, target: &str) -> Reply {
        self.request("GET", target).send()
    }

    /// `POST` without a body.
    pub fn post(&self, target: &str) -> Reply {
        self.request("POST", target).send()
    }

    /// Opens an event stream, from after the event with the id `last`; where stores fail on purpose, until they do not.
    pub fn events(&self, target: &str, last: Option<&str>) -> Events {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .timeout_global(Some(PATIENCE));
        let agent: ureq::Agent = config.build().into();
        until("an event stream", || {
            let mut request = agent.get(format!("{}{target}", self.base_url));
            if let Some(key) = &self.key {
                request = request.header("authorization", format!("Bearer {key}"));
            }
            if let Some(last) = last {
                request = request.header("last-event-id", last);
            }
            let (head, body) = request.call().unwrap().into_parts();
            if head.status == 503 && faults::stores_fail() {
                return None;
            }
            assert_eq!(head.status, 200, "{head:?}");
            Some(Events::new(head.headers, body.into_reader()))
        })
    }

    /// `DELETE`.
    pub fn delete(&self, target: &str) -> Reply {
        self.request("DELETE", target).send()
    }

    /// Submits by JSON, whatever comes of it.
    pub fn submit_json(&self, body: &Value) -> Reply {
        self.request("POST", "/v1/videos").json(body).send()
    }

    /// Submits by form, whatever comes of it.
    pub fn submit_form(&self, form: &Form) -> Reply {
        self.request("POST", "/v1/videos").form(form).send()
    }

    /// Submits by JSON what must be accepted.
    pub fn submit(&self, body: &Value) -> Video {
        self.submit_json(body).video()
    }

    /// The task as it stands.
    pub fn video(&self, id: &str) -> Video {
        self.get(&format!("/v1/videos/{id}")).video()
    }

    /// Polls until the task has the status `wanted`; panics when it ends with another.
    pub fn wait_for(&self, id: &str, wanted: &str) -> Video {
        until(&format!("{id} to be {wanted}"), || {
            let video = self.video(id);
            let status = video.status().to_owned();
            assert!(
                status == wanted || !video.is_finished(),
                "{id} ended: {video:#?}"
            );
            (status == wanted).then_some(video)
        })
    }

    /// Polls until the task is completed.
    pub fn wait_completed(&self, id: &str) -> Video {
        self.wait_for(id, "completed")
    }

    /// Polls until work on the task shows.
    pub fn wait_working(&self, id: &str) -> Video {
        until(&format!("progress of {id}"), || {
            let video = self.video(id);
            assert!(!video.is_finished(), "too late, {id} ended: {video:#?}");
            (video.status() == "in_progress" && video.progress() > 0).then_some(video)
        })
    }
}

/// A request to be filled in.
#[derive(Debug)]
pub struct Request<'c> {
    client: &'c Client,
    head: ureq::http::request::Builder,
    body: Option<Vec<u8>>,
}

impl Request<'_> {
    /// Adds a header, beside an equal one.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.head = self.head.header(name, value.as_ref());
        self
    }

    /// With a body of some type.
    #[must_use]
    pub fn body(self, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut with = self.header("content-type", media_type);
        with.body = Some(body.into());
        with
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    /// With a form.
    #[must_use]
    pub fn form(self, form: &Form) -> Self {
        self.body(&Form::media_type(), form.bytes())
    }

    /// Sends it; where stores fail on purpose, until they do not.
    pub fn send(self) -> Reply {
        let (mut head, ()) = self.head.body(()).unwrap().into_parts();
        let body = self.body.as_deref();
        if faults::ppm().is_none() {
            return self.client.answer(head, body).unwrap();
        }
        faults::make_repeatable(&mut head);
        until("an answer of stores that did not fail", || {
            let reply = self.client.answer(head.clone(), body).ok()?;
            (!faults::caused(&reply)).then_some(reply)
        })
    }
}

/// A `multipart/form-data` body.
#[derive(Clone, Debug, Default)]
pub struct Form(Vec<u8>);

impl Form {
    /// One of text parts.
    pub fn of<'p>(parts: impl IntoIterator<Item = (&'p str, &'p str)>) -> Self {
        parts
            .into_iter()
            .fold(Self::default(), |form, (name, text)| form.text(name, text))
    }

    /// With a further text part.
    #[must_use]
    pub fn text(self, name: &str, text: &str) -> Self {
        self.part(&format!("; name=\"{name}\""), text.as_bytes())
    }

    /// With a further part; `disposition` follows `form-data`.
    #[must_use]
    pub fn part(mut self, disposition: &str, bytes: &[u8]) -> Self {
        let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data{disposition}\r\n\r\n");
        self.0.extend_from_slice(head.as_bytes());
        self.0.extend_from_slice(bytes);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    /// Its media type.
    pub fn media_type() -> String {
        format!("multipart/form-data; boundary={BOUNDARY}")
    }

    /// Its bytes, with the closing boundary.
    pub fn bytes(&self) -> Vec<u8> {
        [&self.0, format!("--{BOUNDARY}--\r\n").as_bytes()].concat()
    }
}
