//! Messages between the service and an engine process; `wire.rs` encodes them.

use std::io;

use kinora_contract::limits::ENGINE_MESSAGE_CHARS_MAX;
use kinora_contract::{FailureCode, Size};
use kinora_engine::{EngineError, RgbPicture};

use crate::protocol::{
    DeclaredPhase, EngineHello, JobEnding, JobHead, LengthDecision, OpenRequest,
};
use crate::sandbox::Confinement;
use crate::wire::{
    MessageBounds, SMALL_BYTES_MAX, TRUSTED_BYTES_MAX, WireMessage, exactly, invalid_data,
};

/// Messages from the service to an engine process.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum HostMessage {
    /// The process confines itself to this, and reports that it did. The first order, unless the
    /// process runs without confinement.
    Confine(Confinement),
    /// The engine's settings. The first order without confinement.
    Open(Box<OpenRequest>),
    /// A job. One [`HostMessage::Material`] follows for each material it lists.
    Job(Box<JobHead>),
    /// The bytes of a picture or a sound.
    Material(Vec<u8>),
    /// The requested frame of the source.
    Frame(Vec<u8>),
    /// The source has no more frames.
    NoFrame,
    /// The source cannot be read.
    Unreadable,
    /// Cancels the current job.
    Cancel,
    /// A message of a later version, which engines must skip; sent only by `kinora engine
    /// check`.
    Unknown,
}

/// Messages from an engine process to the service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EngineMessage {
    /// The process has confined itself, except for these parts.
    Confined(Vec<String>),
    /// The engine's description and capabilities, in answer to [`HostMessage::Open`].
    Hello(Box<EngineHello>),
    /// The engine is open.
    Opened,
    /// The process is alive, whether or not its work advances.
    Alive,
    /// A long silent part of the work begins.
    Phase(DeclaredPhase),
    /// The clip's length, which the job leaves to the engine.
    Decided(LengthDecision),
    /// Progress of the job, 0.0 to 1.0; also a sign that the work advances.
    Progress(f64),
    /// A preview of the clip.
    Preview(RgbPicture),
    /// The next frame.
    Frame(Vec<u8>),
    /// The next piece of sound.
    Audio(Vec<u8>),
    /// Play the source from its beginning, under this number.
    Play(u32),
    /// Request for the next frame of a playing source.
    Next(u32),
    /// Stop playing a source.
    Close(u32),
    /// The engine failed to open, or the job has ended.
    Ended(JobEnding),
    /// A message of a later version; ignored.
    Unknown,
}

/// Failure codes that an engine may report; all others are reserved for the service.
const CODES: [FailureCode; 4] = [
    FailureCode::ContentPolicy,
    FailureCode::GenerationFailed,
    FailureCode::GenerationTimeout,
    FailureCode::OutOfMemory,
];

impl JobEnding {
    /// The message for `ended`.
    pub(crate) fn from_result(ended: Result<(), EngineError>) -> Self {
        match ended {
            Ok(()) => Self::Done,
            Err(EngineError::Cancelled) => Self::Cancelled,
            Err(EngineError::Unsupported(message)) => Self::Unsupported { message },
            Err(EngineError::OutOfMemory(message)) => Self::OutOfMemory { message },
            Err(EngineError::Broken(message)) => Self::Broken { message },
            Err(
                EngineError::CodedFailure { code, cause }
                | EngineError::JobFailed { code, cause }
                | EngineError::Crashed { code, cause },
            ) => Self::Failed {
                message: cause,
                code: Some(code.as_str().to_owned()),
            },
            Err(EngineError::Failed(cause) | EngineError::NoPlace(cause)) => Self::failed(cause),
            Err(error @ EngineError::Sink(_)) => Self::failed(error.to_string()),
        }
    }

    /// The inverse of [`JobEnding::from_result`].
    pub(crate) fn into_result(self) -> Result<(), EngineError> {
        Err(match self {
            Self::Done => return Ok(()),
            Self::Cancelled => EngineError::Cancelled,
            Self::Unsupported { message } => EngineError::Unsupported(shorten(message)),
            Self::OutOfMemory { message } => EngineError::OutOfMemory(shorten(message)),
            Self::Broken { message } => EngineError::Broken(shorten(message)),
            Self::Failed { message, code } => {
                let cause = shorten(message);
                // An engine may name any code, by mistake or malice. Codes that describe the
                // service, such as `worker_lost`, would blame this machine for the engine's fault, so
                // they become a plain failure.
                let known = code.and_then(|code| FailureCode::from_code(&code));
                match known.filter(|code| CODES.contains(code)) {
                    Some(code) => EngineError::CodedFailure { code, cause },
                    None => EngineError::Failed(cause),
                }
            }
        })
    }

    fn failed(message: String) -> Self {
        Self::Failed {
            message,
            code: None,
        }
    }
}

impl WireMessage for HostMessage {
    fn body_bytes_max(_: u8, _: &MessageBounds) -> u32 {
        TRUSTED_BYTES_MAX
    }

    fn pack(self) -> io::Result<(u8, Vec<u8>)> {
        Ok(match self {
            Self::Confine(confinement) => (b'l', serde_json::to_vec(&confinement)?),
            Self::Open(open) => (b'o', serde_json::to_vec(&open)?),
            Self::Job(head) => (b'j', serde_json::to_vec(&head)?),
            Self::Material(bytes) => (b'm', bytes),
            Self::Frame(rgb) => (b'f', rgb),
            Self::NoFrame => (b'n', Vec::new()),
            Self::Unreadable => (b'u', Vec::new()),
            Self::Cancel => (b'c', Vec::new()),
            Self::Unknown => (b'z', b"a later version".to_vec()),
        })
    }

    fn unpack(kind: u8, body: Vec<u8>) -> io::Result<Option<Self>> {
        Ok(Some(match kind {
            b'l' => Self::Confine(serde_json::from_slice(&body)?),
            b'o' => Self::Open(serde_json::from_slice(&body)?),
            b'j' => Self::Job(serde_json::from_slice(&body)?),
            b'm' => Self::Material(body),
            b'f' => Self::Frame(body),
            b'n' => Self::NoFrame,
            b'u' => Self::Unreadable,
            b'c' => Self::Cancel,
            _ => return Ok(None),
        }))
    }
}

impl WireMessage for EngineMessage {
    fn body_bytes_max(kind: u8, bounds: &MessageBounds) -> u32 {
        match kind {
            b'f' => bounds.frame(),
            b'a' => bounds.sound(),
            b'v' => bounds.preview(),
            _ => SMALL_BYTES_MAX,
        }
    }

    fn pack(self) -> io::Result<(u8, Vec<u8>)> {
        Ok(match self {
            Self::Confined(lacking) => (b'l', serde_json::to_vec(&lacking)?),
            Self::Hello(hello) => (b'h', serde_json::to_vec(&hello)?),
            Self::Opened => (b'o', Vec::new()),
            Self::Alive => (b'k', Vec::new()),
            Self::Phase(phase) => (b'g', serde_json::to_vec(&phase)?),
            Self::Decided(decision) => (b'd', serde_json::to_vec(&decision)?),
            Self::Progress(fraction) => (b'p', fraction.to_le_bytes().to_vec()),
            Self::Preview(picture) => (b'v', preview(&picture)),
            Self::Frame(rgb) => (b'f', rgb),
            Self::Audio(pcm) => (b'a', pcm),
            Self::Play(number) => (b's', number.to_le_bytes().to_vec()),
            Self::Next(number) => (b'n', number.to_le_bytes().to_vec()),
            Self::Close(number) => (b'c', number.to_le_bytes().to_vec()),
            Self::Ended(ending) => (b'e', serde_json::to_vec(&ending)?),
            Self::Unknown => (b'z', Vec::new()),
        })
    }

    fn unpack(kind: u8, body: Vec<u8>) -> io::Result<Option<Self>> {
        Ok(Some(match kind {
            b'l' => Self::Confined(serde_json::from_slice(&body)?),
            b'h' => Self::Hello(serde_json::from_slice(&body)?),
            b'o' => Self::Opened,
            b'k' => Self::Alive,
            b'g' => Self::Phase(serde_json::from_slice(&body)?),
            b'd' => Self::Decided(serde_json::from_slice(&body)?),
            b'p' => Self::Progress(exactly(body).map(f64::from_le_bytes)?),
            b'v' => Self::Preview(picture(&body)?),
            b'f' => Self::Frame(body),
            b'a' => Self::Audio(body),
            b's' => Self::Play(number(body)?),
            b'n' => Self::Next(number(body)?),
            b'c' => Self::Close(number(body)?),
            b'e' => Self::Ended(serde_json::from_slice(&body)?),
            _ => Self::Unknown,
        }))
    }
}

/// Shortens an engine's text for logs and errors.
pub(crate) fn shorten(text: String) -> String {
    match text.char_indices().nth(ENGINE_MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Width and height as `u32` in little endian, then `[height][width][3] u8`.
fn preview(picture: &RgbPicture) -> Vec<u8> {
    let (width, height) = (picture.size.width, picture.size.height);
    [
        &width.to_le_bytes(),
        &height.to_le_bytes(),
        &picture.rgb[..],
    ]
    .concat()
}

fn number(body: Vec<u8>) -> io::Result<u32> {
    exactly(body).map(u32::from_le_bytes)
}

fn torn() -> io::Error {
    invalid_data("a picture does not match its size")
}

fn picture(body: &[u8]) -> io::Result<RgbPicture> {
    let (width, rest) = body.split_first_chunk().ok_or_else(torn)?;
    let (height, rgb) = rest.split_first_chunk().ok_or_else(torn)?;
    let size = Size::new(u32::from_le_bytes(*width), u32::from_le_bytes(*height));
    if size.pixels().checked_mul(3) != Some(rgb.len() as u64) {
        return Err(torn());
    }
    Ok(RgbPicture {
        size,
        rgb: rgb.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ClipHead;
    use crate::sandbox::SandboxRole;
    use proptest::prelude::*;

    fn round<M: WireMessage>(message: M) -> M {
        let mut bytes = Vec::new();
        message.write(&mut bytes).unwrap();
        let mut left = &bytes[..];
        let read = M::read(&mut left, &MessageBounds::trusted())
            .unwrap()
            .unwrap();
        assert!(left.is_empty());
        read
    }

    proptest! {
        #[test]
        fn every_message_is_read_as_it_was_written(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
            number: u32,
            fraction in 0.0..1.0,
            text in ".{0,20}",
        ) {
            for order in [
                HostMessage::Confine(Confinement::of(SandboxRole::Engine)),
                HostMessage::Open(Box::new(OpenRequest::new(text.clone(), serde_json::json!({"steps": number})))),
                HostMessage::Material(bytes.clone()),
                HostMessage::Frame(bytes.clone()),
                HostMessage::NoFrame,
                HostMessage::Unreadable,
                HostMessage::Cancel,
            ] {
                prop_assert_eq!(round(order.clone()), order);
            }
            for told in [
                EngineMessage::Confined(vec![text.clone()]),
                EngineMessage::Hello(Box::new(EngineHello::of_this_executable())),
                EngineMessage::Opened,
                EngineMessage::Alive,
                EngineMessage::Phase(DeclaredPhase { name: text.clone(), limit_seconds: fraction }),
                EngineMessage::Decided(LengthDecision { frames: number }),
                EngineMessage::Progress(fraction),
                EngineMessage::Preview(RgbPicture {
                    size: Size::new(1, (bytes.len() / 3) as u32),
                    rgb: bytes[..bytes.len() / 3 * 3].to_vec(),
                }),
                EngineMessage::Frame(bytes.clone()),
                EngineMessage::Audio(bytes.clone()),
                EngineMessage::Play(number),
                EngineMessage::Next(number),
                EngineMessage::Close(number),
                EngineMessage::Ended(JobEnding::Done),
                EngineMessage::Ended(JobEnding::failed(text.clone())),
                EngineMessage::Ended(JobEnding::Failed {
                    message: text,
                    code: Some(FailureCode::StorageFailed.as_str().to_owned()),
                }),
            ] {
                prop_assert_eq!(round(told.clone()), told);
            }
        }

        #[test]
        fn no_bytes_make_a_reader_panic_or_wait_for_what_is_not_there(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let bounds = MessageBounds::trusted();
            let mut left = &bytes[..];
            while let Ok(Some(_)) = EngineMessage::read(&mut left, &bounds) {}
            let mut left = &bytes[..];
            while let Ok(Some(_)) = HostMessage::read(&mut left, &bounds) {}
        }
    }

    /// The body of a message in the session's file, read whole and written as it was.
    fn read_line<M: WireMessage>(bytes: &[u8], bounds: &MessageBounds) -> M {
        let mut left = bytes;
        let message = M::read(&mut left, bounds).unwrap().unwrap();
        assert!(left.is_empty());
        message
    }

    #[test]
    fn the_session_for_authors_of_engines_is_read_message_by_message() {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/tests/golden");
        let session = std::fs::read_to_string(format!("{golden}/session.txt")).unwrap();
        let bounds = MessageBounds::default();
        let mut ends = Vec::new();
        for line in session.lines().filter(|line| line.starts_with(['>', '<'])) {
            let (message, _) = line.split_once('#').unwrap();
            let digits: String = message[1..].split_whitespace().collect();
            let digit = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
            let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(digit).collect();
            if line.starts_with('>') {
                if let HostMessage::Job(head) = read_line(&bytes, &MessageBounds::trusted()) {
                    bounds.set_clip(head.clip);
                }
            } else if let EngineMessage::Ended(end) = read_line(&bytes, &bounds) {
                ends.push(end);
            }
        }
        assert_eq!(ends, [JobEnding::Done, JobEnding::Cancelled]);
    }

    fn failed(code: &str, message: String) -> EngineError {
        let code = Some(code.to_owned());
        JobEnding::Failed { message, code }
            .into_result()
            .unwrap_err()
    }

    #[test]
    fn a_child_cannot_give_codes_of_the_service() {
        for code in FailureCode::ALL {
            let told = matches!(
                failed(code.as_str(), String::new()),
                EngineError::CodedFailure { .. }
            );
            let is_an_engines = matches!(
                code.as_str(),
                "content_policy" | "generation_failed" | "generation_timeout" | "out_of_memory"
            );
            assert_eq!(told, is_an_engines, "{code}");
        }
        assert!(matches!(
            failed("no_such_code", String::new()),
            EngineError::Failed(_)
        ));
    }

    #[test]
    fn a_long_message_of_a_child_is_cut() {
        for code in ["content_policy", "worker_lost"] {
            let shown = failed(code, "é".repeat(30_000)).to_string();
            assert!(shown.ends_with("éé…"), "{shown}");
            assert!(
                shown.chars().count() < ENGINE_MESSAGE_CHARS_MAX + 100,
                "{shown}"
            );
        }
        assert_eq!(shorten("é".repeat(ENGINE_MESSAGE_CHARS_MAX)).len(), 1_000);
    }

    #[test]
    fn a_length_that_nothing_has_is_refused_before_it_is_read() {
        let bounds = MessageBounds::trusted();
        let mut head = &[b'f', 0xff, 0xff, 0xff, 0xff, 1, 2, 3][..];
        assert!(EngineMessage::read(&mut head, &bounds).is_err());
        let mut half = &[b'f', 9, 0, 0, 0, 1, 2, 3][..];
        assert!(EngineMessage::read(&mut half, &bounds).is_err());
        let mut end = &[][..];
        assert!(EngineMessage::read(&mut end, &bounds).unwrap().is_none());
    }

    #[test]
    fn a_message_has_the_bytes_that_its_clip_needs_and_no_more() {
        let bounds = MessageBounds::default();
        let told = |kind: u8, bytes: u32| {
            let mut message = vec![kind];
            message.extend(bytes.to_le_bytes());
            message.resize(message.len() + bytes as usize, b' ');
            EngineMessage::read(&mut &message[..], &bounds)
        };
        // Between jobs a child may send no frames.
        for kind in *b"fav" {
            assert!(told(kind, 1).is_err());
        }
        bounds.set_clip(ClipHead {
            size: Size::new(64, 48).into(),
            fps: 24,
            frames: Some(48),
            frames_max: None,
            audio: true,
        });
        let frame = 64 * 48 * 3;
        assert!(told(b'f', frame).is_ok() && told(b'f', frame + 1).is_err());
        let sound = 2 * 48_000 * 2 * 4;
        assert!(told(b'a', sound).is_ok() && told(b'a', sound * 2).is_err());
        let size = "a message that is too long";
        let error = |kind, bytes| told(kind, bytes).unwrap_err().to_string();
        assert_ne!(error(b'v', frame), size);
        assert_eq!(error(b'v', frame * 10), size);
        assert_ne!(error(b'e', SMALL_BYTES_MAX), size);
        assert_eq!(error(b'e', SMALL_BYTES_MAX + 1), size);
    }
}
