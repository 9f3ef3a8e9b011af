//! The engine of a life: a real [`FilmEngine`] whose films are a few bytes. It takes its time, and fails, crashes,
//! falls silent and forgets by the seed; jobs of an earlier attempt are followed by their tickets.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use kinora_contract::{Clock, FailureCode};
use kinora_engine::{EngineDescription, EngineError, Features, FilmEngine, FilmJob, WorkStage};
use kinora_media::{
    FilmFormat, FilmOpener, MediaError, PlayedFilm, ProbeInfo, Provenance, Recording,
};
use sha2::{Digest, Sha256};
use tokio::time::sleep;

use crate::process::Pulse;
use crate::witness::Witness;

const STEPS_MAX: u64 = 10;
const STEP_MS_MAX: u64 = 6_000;
/// Jobs whose ticket is kept, in a hundred.
const KEEPS: u64 = 50;
const CALL_OFFS_FAIL: u64 = 20;

/// How an attempt ends that comes to nothing.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Fails,
    Crashes,
    OutOfMemory,
    Silent,
}

pub(crate) struct Studio {
    description: EngineDescription,
    witness: Arc<Witness>,
    pulse: Arc<Pulse>,
}

impl Studio {
    pub(crate) fn new(witness: Arc<Witness>, pulse: Arc<Pulse>) -> Self {
        let features = Features {
            text_to_video: true,
            first_frame: true,
            last_frame: true,
            reference_images_max: 9,
            reference_audios_max: 3,
            audio_output: true,
            auto_duration: true,
            negative_prompt: true,
            draft: true,
            edit: false,
        };
        Self {
            description: EngineDescription {
                name: "studio".to_owned(),
                version: "1".to_owned(),
                features,
                is_trained: true,
                final_from_video: false,
            },
            witness,
            pulse,
        }
    }

    fn fate(&self) -> Option<Fate> {
        match self.witness.draw(100) {
            0..6 => Some(Fate::Fails),
            6..14 => Some(Fate::Crashes),
            14..16 => Some(Fate::OutOfMemory),
            16..20 => Some(Fate::Silent),
            _ => None,
        }
    }

    /// Keeps a ticket for the next attempt, or follows that of an earlier one.
    async fn order(&self, job: &FilmJob<'_>) -> Result<(), EngineError> {
        if let Some(ticket) = job.ticket {
            assert_eq!(ticket, job.key, "P2: the ticket of another task");
            self.witness.book().saw("ticket followed".to_owned());
            return Ok(());
        }
        if self.witness.percent(KEEPS) {
            let kept = job.tickets.store(job.key).await;
            kept.map_err(|error| EngineError::CodedFailure {
                code: FailureCode::StorageFailed,
                cause: error.to_string(),
            })?;
        }
        Ok(())
    }

    async fn make(&self, job: &FilmJob<'_>) -> Result<(), EngineError> {
        self.order(job).await?;
        let steps = 1 + self.witness.draw(STEPS_MAX);
        let (pause_ms, fate) = (1 + self.witness.draw(STEP_MS_MAX), self.fate());
        let last = self.witness.draw(steps);
        for step in 0..steps {
            sleep(Duration::from_millis(pause_ms)).await;
            self.pulse.beats().await;
            self.witness.is_not_deceived(self.pulse.k, job.key);
            match fate.filter(|_| step == last) {
                Some(fate) => return self.meet(fate).await,
                None => job
                    .control
                    .report(WorkStage::Generating, step as f64 / steps as f64)?,
            }
        }
        let film = body_of(&job.to.to_string_lossy());
        std::fs::write(job.to, &film).unwrap();
        Ok(())
    }

    async fn meet(&self, fate: Fate) -> Result<(), EngineError> {
        match fate {
            Fate::Fails => Err(EngineError::Failed("by the seed".to_owned())),
            Fate::OutOfMemory => Err(EngineError::OutOfMemory("by the seed".to_owned())),
            Fate::Crashes => Err(EngineError::Crashed {
                code: FailureCode::GenerationFailed,
                cause: "by the seed".to_owned(),
            }),
            Fate::Silent => std::future::pending().await,
        }
    }
}

#[async_trait]
impl FilmEngine for Studio {
    fn describe(&self) -> &EngineDescription {
        &self.description
    }

    fn has_sound_switch(&self) -> bool {
        true
    }

    async fn film(&self, job: &FilmJob<'_>) -> Result<(), EngineError> {
        tokio::select! {
            biased;
            () = job.cancel.cancelled() => Err(EngineError::Cancelled),
            made = self.make(job) => made,
        }
    }

    async fn call_off(&self, kept: &str) -> Result<(), EngineError> {
        if self.witness.percent(CALL_OFFS_FAIL) {
            return Err(EngineError::CodedFailure {
                code: FailureCode::GenerationFailed,
                cause: format!("{kept} by the seed"),
            });
        }
        self.witness
            .book()
            .saw("upstream job called off".to_owned());
        Ok(())
    }
}

/// The bytes of the film of this name: no two attempts make the same.
fn body_of(name: &str) -> Bytes {
    let name = name.rsplit('/').next().unwrap_or_default();
    let digest = Sha256::digest(name);
    digest.repeat(1 + usize::from(digest[0]) % 6).into()
}

/// Looks into films without decoding them: they must be whole.
#[derive(Debug)]
pub(crate) struct CannedFilms;

impl FilmOpener for CannedFilms {
    fn examine(
        &self,
        path: &Path,
        asked: &FilmFormat,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Recording, MediaError> {
        assert!(go_on(), "nobody waits for this film");
        let bytes = std::fs::read(path)?;
        assert_eq!(bytes, body_of(&path.to_string_lossy()), "another's film");
        let seconds = f64::from(asked.seconds.unwrap_or(5));
        let is_decoded = bytes[0].is_multiple_of(2);
        Ok(Recording {
            info: ProbeInfo {
                duration_seconds: seconds,
                fps: 24.0,
                frames: (seconds * 24.0) as u32,
                width: asked.width,
                height: asked.height,
                has_audio: asked.audio.unwrap_or(false),
                file_bytes: bytes.len() as u64,
            },
            poster_webp: [b"poster", &bytes[..]].concat(),
            spritesheet_jpeg: [b"sheet", &bytes[..]].concat(),
            // Some films cannot be decoded.
            first_frame_jpeg: is_decoded.then(|| [b"first", &bytes[..]].concat()),
            last_frame_jpeg: is_decoded.then(|| [b"last", &bytes[..]].concat()),
        })
    }

    fn label(&self, _: &Path, _: &mut Recording, _: &Provenance) -> Result<bool, MediaError> {
        Ok(true)
    }

    fn look(&self, _path: &Path) -> Result<ProbeInfo, MediaError> {
        panic!("no model of a life takes edits")
    }

    fn play(&self, _path: &Path, _info: &ProbeInfo) -> Result<Box<dyn PlayedFilm>, MediaError> {
        panic!("no model of a life takes edits")
    }
}

impl Witness {
    /// However wrong a worker's own clock is, an engine does not go on for long under a lease that is over: not
    /// even when the store could not be reached.
    fn is_not_deceived(&self, k: usize, task: &str) {
        let now_ms = self.clock.steady_ms();
        let until_ms = self.believed_until_ms(k, task);
        // The machine may have slept, or the worker hung, a moment ago.
        let shaken_ms = self.shaken_ms(k);
        let late = |since_ms: u64| now_ms > since_ms + GRACE_MS;
        assert!(
            !late(until_ms) || !late(shaken_ms),
            "P10: worker {k} makes {task} under a lease that ended {} ms ago",
            now_ms - until_ms
        );
    }
}

/// A heartbeat, and the patience of the lease keeper with a store that does not answer, twice.
const GRACE_MS: u64 = 3_000 + 2 * 5_000;
