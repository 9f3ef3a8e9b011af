//! Event streams, as a browser's `EventSource` reads them.

use std::io::{BufRead, BufReader};

use ureq::BodyReader;
use ureq::http::HeaderMap;

use crate::video::{Tracker, Video};

/// An open stream of `video.updated` events. As an iterator it waits for the next one, and ends with the stream.
pub struct Events {
    /// The headers of the answer.
    pub headers: HeaderMap,
    reader: BufReader<BodyReader<'static>>,
    tracker: Tracker,
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its `id`.
    pub id: String,
    /// Its `data`, as sent.
    pub data: String,
    /// Its `data`, judged.
    pub video: Video,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl Events {
    pub(crate) fn new(headers: HeaderMap, body: BodyReader<'static>) -> Self {
        Self {
            headers,
            reader: BufReader::new(body),
            // Others may be ahead of what is read here.
            tracker: Tracker::default(),
        }
    }

    /// Reads until one is `wanted`, and returns that one; panics at the end of the stream.
    pub fn wait_for(&mut self, wanted: impl Fn(&Event) -> bool) -> Event {
        let found = self.find(wanted);
        found.expect("the event comes before the end of the stream")
    }

    /// Waits for a sign of life; panics when something else comes first.
    pub fn sign_of_life(&mut self) {
        let mut lines = self.block().expect("the stream goes on");
        if lines.iter().all(|line| line.starts_with("retry: ")) {
            lines = self.block().expect("the stream goes on");
        }
        assert_eq!(lines, [":"]);
    }

    /// The lines up to the next empty one; `None` at the end, also where the stream breaks off.
    fn block(&mut self) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end_matches('\n') {
                "" => return Some(lines),
                text => lines.push(text.to_owned()),
            }
        }
    }

    /// The events up to the one that says that this task has ended.
    pub fn until_ended(&mut self, id: &str) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            events.push(self.next().unwrap());
            let last = &events.last().unwrap().video;
            if last.id() == id && last.is_finished() {
                return events;
            }
        }
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            let lines = self.block()?;
            let field = |name: &str| {
                let start = format!("{name}: ");
                let mut found = lines.iter().filter_map(|line| line.strip_prefix(&start));
                let value = found.next().map(str::to_owned);
                assert!(found.next().is_none(), "{name} twice: {lines:#?}");
                value
            };
            let Some(kind) = field("event") else {
                let is_retry = field("retry").is_some_and(|ms| ms.parse::<u64>().is_ok());
                assert!(is_retry || lines == [":"], "{lines:#?}");
                continue;
            };
            assert_eq!(
                (kind.as_str(), lines.len()),
                ("video.updated", 3),
                "{lines:#?}"
            );
            let (id, data) = (field("id").unwrap(), field("data").unwrap());
            let video = serde_json::from_str(&data).expect("data is JSON");
            return Some(Event {
                id,
                video: Video::judged(video, &self.tracker),
                data,
            });
        }
    }
}
