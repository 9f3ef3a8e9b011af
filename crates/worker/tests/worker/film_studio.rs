//! Somebody else's studio, which hands over finished films.

use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kinora_contract::{FailureCode, VideoSpec, Warning, WarningCode};
use kinora_engine::{EngineDescription, EngineError, Features, FilmEngine, FilmJob, WorkStage};
use kinora_media::{ClipFormat, Recorder, RecorderOptions};

/// What a studio brings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Film {
    pub(crate) size: (u32, u32),
    pub(crate) frames: u32,
    pub(crate) is_video: bool,
    /// Its parameter sets are noise: its index is sound, and nobody can decode it.
    pub(crate) is_damaged: bool,
}

/// What was asked for, on a model's grid.
pub(crate) const GOOD: Film = Film {
    size: (64, 80),
    frames: 17,
    is_video: true,
    is_damaged: false,
};

/// Somebody else's studio: keeps a ticket, says that it lives, and waits until it may deliver.
pub(crate) struct Studio {
    pub(crate) description: EngineDescription,
    pub(crate) film: Film,
    pub(crate) keeps_undecodable: bool,
    pub(crate) keeps_mismatched: bool,
    pub(crate) seen: Mutex<Seen>,
    pub(crate) open: tokio::sync::watch::Sender<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The ticket that each attempt was given.
    pub(crate) tickets: Vec<Option<String>>,
    pub(crate) cancelled: usize,
    pub(crate) dropped: usize,
    /// Tokens by which work was called off, each time that it was asked for.
    pub(crate) called_off: Vec<String>,
    /// Nobody is there to call off the next one.
    pub(crate) is_away: bool,
}

impl Studio {
    pub(crate) fn new(film: Film) -> Arc<Self> {
        Arc::new(Self::of(film))
    }

    pub(crate) fn of(film: Film) -> Self {
        Self {
            keeps_undecodable: false,
            keeps_mismatched: false,
            description: EngineDescription {
                is_trained: true,
                final_from_video: false,
                name: "studio".to_owned(),
                version: "1".to_owned(),
                features: Features::default(),
            },
            film,
            seen: Mutex::default(),
            open: tokio::sync::watch::Sender::new(false),
        }
    }

    pub(crate) fn delivers(film: Film) -> Arc<Self> {
        let studio = Self::new(film);
        studio.open.send_replace(true);
        studio
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn note(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().unwrap());
    }
}

/// Counts an attempt that was left without a word.
struct Dropped<'a>(Option<&'a Studio>);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        if let Some(studio) = self.0 {
            studio.note(|seen| seen.dropped += 1);
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

    fn warnings(&self, _: &VideoSpec) -> Vec<Warning> {
        vec![WarningCode::SeedIgnored.into()]
    }

    fn keeps_undecodable(&self) -> bool {
        self.keeps_undecodable
    }

    fn keeps_mismatched(&self) -> bool {
        self.keeps_mismatched
    }

    async fn film(&self, job: &FilmJob<'_>) -> Result<(), EngineError> {
        let mut dropped = Dropped(Some(self));
        if job.ticket.is_none() {
            let ticket = format!("ticket of {}", job.key);
            job.tickets.store(&ticket).await.unwrap();
        }
        self.note(|seen| seen.tickets.push(job.ticket.map(str::to_owned)));
        job.control.report(WorkStage::Generating, 0.5).unwrap();
        let mut open = self.open.subscribe();
        let made = tokio::select! {
            _ = open.wait_for(|open| *open) => {
                write(self.film, job.to);
                Ok(())
            }
            () = job.cancel.cancelled() => {
                self.note(|seen| seen.cancelled += 1);
                Err(EngineError::Cancelled)
            }
        };
        dropped.0 = None;
        made
    }

    async fn call_off(&self, ticket: &str) -> Result<(), EngineError> {
        let mut seen = self.seen.lock().unwrap();
        seen.called_off.push(ticket.to_owned());
        match std::mem::take(&mut seen.is_away) {
            true => Err(EngineError::CodedFailure {
                code: FailureCode::GenerationTimeout,
                cause: "nobody is there".to_owned(),
            }),
            false => Ok(()),
        }
    }
}

fn write(film: Film, to: &Path) {
    if !film.is_video {
        return std::fs::write(to, b"<html>").unwrap();
    }
    let format = ClipFormat {
        width: film.size.0,
        height: film.size.1,
        fps: 8,
        frames: film.frames,
        audio: None,
    };
    let mut recorder = Recorder::create(to, format, RecorderOptions::default()).unwrap();
    for _ in 0..film.frames {
        let rgb = vec![0x80; format.frame_bytes()];
        recorder.push_frame(&rgb).unwrap();
    }
    recorder.finish().unwrap();
    if film.is_damaged {
        let mut bytes = std::fs::read(to).unwrap();
        let avcc = bytes.windows(4).position(|kind| kind == b"avcC").unwrap();
        bytes[avcc + 13..avcc + 20].fill(0xa5);
        std::fs::write(to, bytes).unwrap();
    }
}
