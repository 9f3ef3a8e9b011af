//! The websocket of one job: connects, reads events, and connects again a few times when it breaks. Its name is
//! the job's, so a second socket of the same name takes its place: an attempt that goes on after ours. Events
//! are hints: without the socket a job goes on all the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt;
use hyper::Method;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use sha1::{Digest, Sha1};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::shared::ComfyShared;
use super::workflow::Workflow;
use crate::servers::{CallError, ServerCall, SpreadBackoff, chain};

/// A server that keeps closing the socket, or another attempt that keeps taking its place, is left alone.
const CONNECTS_MAX: u32 = 5;
/// Larger messages are no previews.
const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// Events that were not taken yet; the socket waits beyond that.
const EVENTS_MAX: usize = 16;
/// Of RFC 6455, 1.3.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The events of one job. Dropping it closes the socket.
pub(crate) struct EventFeed {
    events: mpsc::Receiver<ComfyEvent>,
    _socket: JoinSet<()>,
}

impl EventFeed {
    /// Listens to the job `id` at a server.
    pub(crate) fn open(shared: Arc<ComfyShared>, index: usize, id: &str) -> Self {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let mut socket = JoinSet::new();
        socket.spawn(listen(shared, index, id.to_owned(), sender));
        Self {
            events,
            _socket: socket,
        }
    }

    /// The next event; never, once the socket has broken for good.
    pub(crate) async fn next(&mut self) -> ComfyEvent {
        match self.events.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }
}

async fn listen(
    shared: Arc<ComfyShared>,
    index: usize,
    id: String,
    events: mpsc::Sender<ComfyEvent>,
) {
    let backoff = SpreadBackoff::new(&shared.pool.options, &id);
    for attempt in 0..CONNECTS_MAX {
        let ended = match connect(&shared, index, &id).await {
            Ok(socket) => read(socket, &id, &events).await,
            Err(cause) => Err(cause),
        };
        if let Err(cause) = ended {
            let server = &shared.pool.servers[index].name;
            tracing::debug!(server, error = chain(&cause), "websocket of a job broke");
        }
        shared.pool.timer.sleep(backoff.wait(attempt)).await;
    }
}

/// Passes the socket's events on until it ends.
async fn read(
    mut socket: WebSocketStream<TokioIo<Upgraded>>,
    id: &str,
    events: &mpsc::Sender<ComfyEvent>,
) -> Result<(), CallError> {
    while let Some(message) = socket.next().await {
        let event = match message.map_err(CallError::broken)? {
            Message::Text(text) => read_text(&text, id),
            Message::Binary(bytes) => read_binary(&bytes),
            _ => None,
        };
        if let Some(event) = event
            && events.send(event).await.is_err()
        {
            return Ok(());
        }
    }
    Ok(())
}

/// Opens the socket over a connection like that of any other call, so keys, headers and TLS are the same.
async fn connect(
    shared: &ComfyShared,
    index: usize,
    id: &str,
) -> Result<WebSocketStream<TokioIo<Upgraded>>, CallError> {
    let upstream = &shared.pool.servers[index];
    let mut url = upstream.url(&["ws"]);
    url.query_pairs_mut().append_pair("clientId", id);
    // It guards against caches, not against people: it need not be secret.
    let key = STANDARD.encode(&Sha1::digest(id.as_bytes())[..16]);
    let call = ServerCall {
        headers: &[
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", key.as_str()),
        ],
        ..ServerCall::new(Method::GET, url, shared.pool.options.answer_timeout)
    };
    let response = upstream.open(&call).await?;
    let expected = STANDARD.encode(Sha1::digest(format!("{key}{GUID}").as_bytes()));
    let accepted = response.headers().get("sec-websocket-accept");
    let is_accepted = accepted.is_some_and(|value| value == expected.as_str());
    if response.status().as_u16() != 101 || !is_accepted {
        return Err(CallError::Status {
            status: response.status().as_u16(),
            text: "no websocket".to_owned(),
        });
    }
    let upgraded = hyper::upgrade::on(response).await;
    let upgraded = upgraded.map_err(CallError::broken)?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let stream = TokioIo::new(upgraded);
    Ok(WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await)
}

/// An event of one job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ComfyEvent {
    /// How far nodes are, 0.0 to 1.0.
    Nodes(Vec<(String, f64)>),
    /// The job has ended, well or badly.
    Ended,
    /// A JPEG or PNG of the unfinished film.
    Preview(Bytes),
}

/// Reads a text message; `None` if it says nothing of the job `id`.
fn read_text(message: &str, id: &str) -> Option<ComfyEvent> {
    let sent: Value = serde_json::from_str(message).ok()?;
    let data = sent.get("data")?;
    if data["prompt_id"].as_str() != Some(id) {
        return None;
    }
    match sent["type"].as_str()? {
        "execution_cached" => {
            let nodes = data.get("nodes")?.as_array()?.iter();
            let done = nodes.filter_map(|node| Some((node.as_str()?.to_owned(), 1.0)));
            Some(ComfyEvent::Nodes(done.collect()))
        }
        "progress_state" => {
            let nodes = data.get("nodes")?.as_object()?.iter();
            Some(ComfyEvent::Nodes(
                nodes
                    .filter_map(|(id, node)| match node.get("state")?.as_str()? {
                        "finished" => Some((id.clone(), 1.0)),
                        _ => Some((id.clone(), fraction(node)?)),
                    })
                    .collect(),
            ))
        }
        "progress" => {
            let node = data.get("node")?.as_str()?.to_owned();
            Some(ComfyEvent::Nodes(vec![(node, fraction(data)?)]))
        }
        "execution_success" | "execution_error" | "execution_interrupted" => {
            Some(ComfyEvent::Ended)
        }
        _ => None,
    }
}

fn fraction(of: &Value) -> Option<f64> {
    let fraction = of.get("value")?.as_f64()? / of.get("max")?.as_f64()?;
    fraction.is_finite().then(|| fraction.clamp(0.0, 1.0))
}

/// Reads a binary message: a type as big-endian u32; of type 1 a format and the image, of type 4 the
/// length of a JSON head, the head and the image.
fn read_binary(message: &Bytes) -> Option<ComfyEvent> {
    let word = |at: usize| {
        let bytes = message.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(bytes))
    };
    let start = match word(0)? {
        1 => 8,
        4 => 8_usize.checked_add(usize::try_from(word(4)?).ok()?)?,
        _ => return None,
    };
    let is_there = start < message.len();
    is_there.then(|| ComfyEvent::Preview(message.slice(start..)))
}

/// The progress of a job by its nodes. One with `steps` counts as many times as it has steps.
#[derive(Clone, Debug)]
pub(crate) struct NodeProgress {
    weights: BTreeMap<String, f64>,
    done: BTreeMap<String, f64>,
}

impl NodeProgress {
    pub(crate) fn of(workflow: &Workflow) -> Self {
        Self {
            weights: workflow
                .nodes
                .iter()
                .map(|(id, node)| {
                    let steps = node.inputs.get("steps").and_then(Value::as_f64);
                    (id.clone(), steps.unwrap_or(1.0).clamp(1.0, 1_000.0))
                })
                .collect(),
            done: BTreeMap::new(),
        }
    }

    /// Records how far nodes are; returns the fraction of the job that is done.
    pub(crate) fn record(&mut self, nodes: Vec<(String, f64)>) -> f64 {
        let known = nodes
            .into_iter()
            .filter(|(id, _)| self.weights.contains_key(id));
        self.done.extend(known);
        let all: f64 = self.weights.values().sum();
        let done = self.done.iter().map(|(id, part)| self.weights[id] * part);
        done.sum::<f64>() / all.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(kind: &str, data: Value) -> Option<ComfyEvent> {
        read_text(&json!({"type": kind, "data": data}).to_string(), "a")
    }

    #[test]
    fn events_of_the_job_are_read_and_those_of_others_are_not() {
        let half = ComfyEvent::Nodes(vec![("3".to_owned(), 0.5)]);
        let progress = json!({"prompt_id": "a", "node": "3", "value": 10, "max": 20});
        assert_eq!(read("progress", progress), Some(half.clone()));
        let state =
            json!({"prompt_id": "a", "nodes": {"3": {"state": "running", "value": 1, "max": 2}}});
        assert_eq!(read("progress_state", state), Some(half));
        let cached = json!({"prompt_id": "a", "nodes": ["4"]});
        assert_eq!(
            read("execution_cached", cached),
            Some(ComfyEvent::Nodes(vec![("4".to_owned(), 1.0)]))
        );
        assert_eq!(
            read("execution_success", json!({"prompt_id": "a"})),
            Some(ComfyEvent::Ended)
        );
        assert_eq!(read("execution_success", json!({"prompt_id": "b"})), None);
        assert_eq!(read("status", json!({"prompt_id": "a"})), None);
        let nonsense = json!({"prompt_id": "a", "node": "3", "value": 1, "max": 0});
        assert_eq!(read("progress", nonsense), None);
        assert_eq!(read_text("{", "a"), None);
    }

    #[test]
    fn previews_are_read_in_both_forms() {
        let image = || Some(ComfyEvent::Preview(Bytes::from_static(b"image")));
        let plain = [&[0, 0, 0, 1, 0, 0, 0, 1][..], b"image"].concat();
        assert_eq!(read_binary(&plain.into()), image());
        let headed = [&[0, 0, 0, 4, 0, 0, 0, 2][..], b"{}image"].concat();
        assert_eq!(read_binary(&headed.into()), image());
        for wrong in [
            &[][..],
            &[0, 0, 0, 1],
            &[0, 0, 0, 9, 0, 0, 0, 0, 1],
            &[0, 0, 0, 4, 255, 255, 255, 255, 1],
        ] {
            assert_eq!(read_binary(&Bytes::from_static(wrong)), None);
        }
    }

    #[test]
    fn a_sampler_counts_by_its_steps() {
        let graph = json!({
            "1": {"class_type": "Load", "inputs": {}},
            "3": {"class_type": "KSampler", "inputs": {"steps": 18}},
            "9": {"class_type": "Save", "inputs": {}},
        });
        let mut progress = NodeProgress::of(&Workflow::read(graph.to_string().as_bytes()).unwrap());
        let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(near(progress.record(vec![("1".to_owned(), 1.0)]), 0.05));
        assert!(near(
            progress.record(vec![("3".to_owned(), 0.5), ("x".to_owned(), 1.0)]),
            0.5
        ));
    }
}
