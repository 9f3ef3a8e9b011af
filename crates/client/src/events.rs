//! Server-sent events, as defined by
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html>. Events without a task are
//! skipped.

use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use kinora_http::next_piece;

use crate::error::Error;
use crate::video::Video;

/// The event whose data is a task object.
const UPDATED: &str = "video.updated";
/// Maximum size of one event.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// A stream of one task's updates.
#[derive(Debug)]
pub(crate) struct EventStream {
    body: Incoming,
    parser: EventParser,
}

impl EventStream {
    pub(crate) fn new(body: Incoming) -> Self {
        Self {
            body,
            parser: EventParser::default(),
        }
    }

    /// The id of the last event, from which another stream can resume.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.parser.last_id.as_deref()
    }

    /// The next update; `None` at the end of the stream, [`Error::Timeout`] if nothing arrived for
    /// `silence_max`, not even a comment. Cancel-safe.
    pub(crate) async fn next(&mut self, silence_max: Duration) -> Result<Option<Video>, Error> {
        loop {
            while let Some(event) = self.parser.event() {
                if event.name == UPDATED {
                    let video = serde_json::from_str(&event.data);
                    return video
                        .map(Some)
                        .map_err(|error| Error::Answer(error.to_string()));
                }
            }
            let Some(data) = next_piece(&mut self.body, silence_max).await? else {
                return Ok(None);
            };
            self.parser.feed(&data)?;
        }
    }
}

/// One event.
#[derive(Debug, Default, PartialEq)]
struct ServerEvent {
    name: String,
    data: String,
}

/// Parses bytes into events.
#[derive(Debug, Default)]
struct EventParser {
    rest: Vec<u8>,
    current: ServerEvent,
    has_data: bool,
    last_id: Option<String>,
}

impl EventParser {
    fn feed(&mut self, bytes: &Bytes) -> Result<(), Error> {
        self.rest.extend_from_slice(bytes);
        if self.rest.len() + self.current.data.len() > EVENT_BYTES_MAX {
            return Err(Error::Answer("an event is too large".to_owned()));
        }
        Ok(())
    }

    /// The next complete event.
    fn event(&mut self) -> Option<ServerEvent> {
        while let Some(line) = self.line() {
            if line.is_empty() {
                let event = std::mem::take(&mut self.current);
                if std::mem::take(&mut self.has_data) {
                    return Some(event);
                }
                continue;
            }
            self.field(&line);
        }
        None
    }

    /// The next complete line without its end: LF, CR LF or CR. A CR at the end of the received
    /// bytes may be half of an end.
    fn line(&mut self) -> Option<String> {
        let end = self
            .rest
            .iter()
            .position(|byte| matches!(byte, b'\n' | b'\r'))?;
        let rest = self.rest.get(end..).unwrap_or_default();
        let length = match rest {
            [b'\r'] => return None,
            [b'\r', b'\n', ..] => 2,
            _ => 1,
        };
        let line: Vec<u8> = self.rest.drain(..end + length).take(end).collect();
        Some(String::from_utf8_lossy(&line).into_owned())
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.current.data.push('\n');
                }
                self.current.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.current.name),
            "id" => self.last_id = Some(value.to_owned()),
            // Comments keep the connection alive; this client has its own `retry`.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": hello\n\nid: 7\nevent: video.updated\ndata: {\"a\":\ndata: 1}\n\n\
                          event: other\r\ndata:x\r\n\r\nid: 8\n\ndata: y\r\r";

    fn event(name: &str, data: &str) -> ServerEvent {
        ServerEvent {
            name: name.to_owned(),
            data: data.to_owned(),
        }
    }

    #[test]
    fn events_are_read_however_they_are_cut() {
        let expected = [
            event("video.updated", "{\"a\":\n1}"),
            event("other", "x"),
            event("", "y"),
        ];
        for size in 1..=STREAM.len() {
            let (mut parser, mut found) = (EventParser::default(), Vec::new());
            // One byte more shows that the last CR is a whole end of line.
            let bytes = [STREAM.as_bytes(), b":"].concat();
            for piece in bytes.chunks(size) {
                parser.feed(&Bytes::copy_from_slice(piece)).unwrap();
                found.extend(std::iter::from_fn(|| parser.event()));
            }
            assert_eq!(found, expected, "in pieces of {size}");
            assert_eq!(parser.last_id.as_deref(), Some("8"));
        }
    }

    #[test]
    fn an_event_without_an_end_is_refused() {
        let mut parser = EventParser::default();
        let piece = Bytes::from(vec![b'x'; EVENT_BYTES_MAX / 2]);
        parser.feed(&piece).unwrap();
        parser.feed(&piece).unwrap();
        assert!(parser.feed(&piece).is_err());
    }
}
