//! The websocket of one job: connects, reads events, and connects again a few times when it breaks. Its
//! name is the job's, so a second socket of the same name takes its place: an attempt that goes on after
//! ours. Without the socket a job goes on all the same.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use hyper::Method;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use kinora_upstream::{Backoff, Call, Cause, chain};
use sha1::{Digest, Sha1};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::event::{self, Event};
use crate::shared::Shared;

/// A server that keeps closing the socket, or another attempt that keeps taking its place, is left alone.
const CONNECTS_MAX: u32 = 5;
/// Larger messages are no previews.
const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// Events that were not taken yet; the socket waits beyond that.
const EVENTS_MAX: usize = 16;
/// Of RFC 6455, 1.3.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The events of one job. Dropping it closes the socket.
pub(crate) struct Feed {
    events: mpsc::Receiver<Event>,
    _socket: JoinSet<()>,
}

impl Feed {
    /// Listens to the job `id` at a server.
    pub(crate) fn open(shared: Arc<Shared>, index: usize, id: &str) -> Self {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let mut socket = JoinSet::new();
        socket.spawn(listen(shared, index, id.to_owned(), sender));
        Self {
            events,
            _socket: socket,
        }
    }

    /// The next event; never, once the socket has broken for good.
    pub(crate) async fn next(&mut self) -> Event {
        match self.events.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }
}

async fn listen(shared: Arc<Shared>, index: usize, id: String, events: mpsc::Sender<Event>) {
    let limits = shared.options.limits;
    let backoff = Backoff::new(limits.backoff_first, limits.backoff_max, &id);
    for attempt in 0..CONNECTS_MAX {
        let ended = match connect(&shared, index, &id).await {
            Ok(socket) => read(socket, &id, &events).await,
            Err(cause) => Err(cause),
        };
        if let Err(cause) = ended {
            let server = &shared.upstreams[index].name;
            tracing::debug!(server, error = chain(&cause), "websocket of a job broke");
        }
        shared.timer.sleep(backoff.wait(attempt)).await;
    }
}

/// Passes the socket's events on until it ends.
async fn read(
    mut socket: WebSocketStream<TokioIo<Upgraded>>,
    id: &str,
    events: &mpsc::Sender<Event>,
) -> Result<(), Cause> {
    while let Some(message) = socket.next().await {
        let event = match message.map_err(|error| Cause::Exchange(error.into()))? {
            Message::Text(text) => event::text(&text, id),
            Message::Binary(bytes) => event::binary(&bytes),
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
    shared: &Shared,
    index: usize,
    id: &str,
) -> Result<WebSocketStream<TokioIo<Upgraded>>, Cause> {
    let upstream = &shared.upstreams[index];
    let mut url = upstream.url(&["ws"]);
    url.query_pairs_mut().append_pair("clientId", id);
    // It guards against caches, not against people: it need not be secret.
    let key = STANDARD.encode(&Sha1::digest(id.as_bytes())[..16]);
    let call = Call {
        method: Method::GET,
        url,
        body: None,
        headers: &[
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", key.as_str()),
        ],
        limit: shared.options.answer_timeout,
    };
    let response = upstream.open(&call).await?;
    let expected = STANDARD.encode(Sha1::digest(format!("{key}{GUID}").as_bytes()));
    let accepted = response.headers().get("sec-websocket-accept");
    let is_accepted = accepted.is_some_and(|value| value == expected.as_str());
    if response.status().as_u16() != 101 || !is_accepted {
        return Err(Cause::Status {
            status: response.status().as_u16(),
            text: "no websocket".to_owned(),
        });
    }
    let upgraded = hyper::upgrade::on(response).await;
    let upgraded = upgraded.map_err(|error| Cause::Exchange(error.into()))?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let stream = TokioIo::new(upgraded);
    Ok(WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await)
}
