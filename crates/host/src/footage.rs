//! The source of an edit, as seen by an engine process: the service has its frames, and the process
//! requests them one at a time.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use kinora_contract::Size;
use kinora_engine::{EngineError, Footage, Playback};

use crate::line::Line;
use crate::message::Told;
use crate::protocol::SourceHead;

/// The service's answer to a request for a frame.
pub(crate) enum Answer {
    Frame(Vec<u8>),
    End,
    Unreadable,
}

/// Receives answers. A reader holds the lock until its answer arrives.
pub(crate) type Answers = Arc<Mutex<Receiver<Answer>>>;

/// A video whose frames are in the service.
pub(crate) struct RemoteFootage {
    head: SourceHead,
    line: Line,
    answers: Answers,
    numbers: AtomicU32,
}

impl RemoteFootage {
    pub(crate) fn new(head: SourceHead, line: Line, answers: Answers) -> Self {
        Self {
            head,
            line,
            answers,
            numbers: AtomicU32::new(0),
        }
    }
}

impl fmt::Debug for RemoteFootage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteFootage({:?})", self.head)
    }
}

impl Footage for RemoteFootage {
    fn size(&self) -> Size {
        self.head.size.into()
    }

    fn fps(&self) -> u32 {
        self.head.fps
    }

    fn frames(&self) -> u32 {
        self.head.frames
    }

    fn play(&self) -> Result<Box<dyn Playback>, EngineError> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.line.tell(Told::Play(number));
        Ok(Box::new(Playing {
            number,
            line: self.line.clone(),
            answers: self.answers.clone(),
        }))
    }
}

struct Playing {
    number: u32,
    line: Line,
    answers: Answers,
}

impl Playback for Playing {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        self.line.tell(Told::Next(self.number));
        match answers.recv() {
            Ok(Answer::Frame(rgb)) => Ok(Some(rgb)),
            Ok(Answer::End) => Ok(None),
            Ok(Answer::Unreadable) | Err(_) => {
                Err(EngineError::Failed("the source cannot be read".to_owned()))
            }
        }
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        self.line.tell(Told::Close(self.number));
    }
}
