//! An engine's servers, a timer that moves by itself, and the surroundings of a run.

use std::error::Error;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::{FrameSize, SPEC_VERSION, VideoInputs, VideoLength, VideoSpec};
use kinora_engine_upstreams::dialects::{
    JobWatcher, KeySource, ReferenceFile, RemoteError, RemoteOptions, RemoteRequest, RemoteServers,
    RemoteTicket, UpstreamOptions, WaitTimer,
};
use kinora_testkit::providers::TestProvider;
use tokio_util::sync::CancellationToken;

use crate::case::{Case, Input};

/// A timer on which every wait is over at once.
#[derive(Debug, Default)]
struct JumpTimer(Mutex<Duration>);

#[async_trait]
impl WaitTimer for JumpTimer {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    async fn sleep(&self, duration: Duration) {
        *self.0.lock().unwrap() += duration;
        tokio::task::yield_now().await;
    }
}

/// Passes in real time.
#[allow(clippy::disallowed_methods, reason = "bodies are paced in real time")]
pub(crate) fn clock() -> Arc<dyn kinora_contract::Clock> {
    let begun = std::time::Instant::now();
    Arc::new(kinora_contract::RunningClock::at(0, move || {
        begun.elapsed()
    }))
}

/// Keeps tickets; cancels at the first sign of life if it has a token.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) tickets: Vec<RemoteTicket>,
    pub(crate) cancels: Option<CancellationToken>,
}

#[async_trait]
impl JobWatcher for Notes {
    async fn submitted(
        &mut self,
        ticket: &RemoteTicket,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.tickets.push(ticket.clone());
        Ok(())
    }

    fn alive(&mut self, _fraction: f64) {
        if let Some(token) = &self.cancels {
            token.cancel();
        }
    }
}

/// A provider's stand-in and an engine's servers that use it.
pub(crate) struct Stage {
    pub(crate) case: &'static Case,
    pub(crate) server: TestProvider,
    pub(crate) remote: RemoteServers,
    pub(crate) notes: Notes,
    pub(crate) cancel: CancellationToken,
    folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new(case: &'static Case) -> Self {
        Self::with(case, case.key)
    }

    /// With a key of its own.
    pub(crate) fn with(case: &'static Case, key: &str) -> Self {
        let (server, folder) = (case.server(), tempfile::tempdir().unwrap());
        let remote = servers(case, &server, &folder, key);
        Self {
            case,
            server,
            remote,
            notes: Notes::default(),
            cancel: CancellationToken::new(),
            folder,
        }
    }

    pub(crate) fn result(&self) -> PathBuf {
        self.folder.path().join("result.mp4")
    }

    /// Runs a request to its end.
    pub(crate) async fn run(&mut self, input: Input) -> Result<u64, RemoteError> {
        self.follow(input, None).await
    }

    /// Runs a request to its end, with the ticket of an earlier run.
    pub(crate) async fn follow(
        &mut self,
        input: Input,
        ticket: Option<RemoteTicket>,
    ) -> Result<u64, RemoteError> {
        let (to, request) = (self.result(), self.request(input));
        let (notes, cancel) = (&mut self.notes, &self.cancel);
        self.remote.run(&request, ticket, &to, notes, cancel).await
    }

    /// Everything that a request can say and the provider can hear.
    pub(crate) fn request(&self, input: Input) -> RemoteRequest {
        let features = self.case.dialect().features();
        let mut spec = spec(self.case);
        if features.negative_prompt {
            spec.negative_prompt = Some("rain".to_owned());
        }
        spec.generate_audio = self.case.sound;
        spec.inputs = inputs(input);
        let kinds = spec.inputs.references().into_iter().map(|url| {
            let is_sound = url.ends_with(".mp3");
            self.reference(if is_sound { "audio/mpeg" } else { "image/png" })
        });
        let references = kinds.collect();
        RemoteRequest {
            model: Some(self.case.model.to_owned()),
            spec,
            references,
            audio_switch: self.case.sound,
            key: "video_0001".to_owned(),
            avoid: Vec::new(),
        }
    }

    /// A file of which every byte is known: `png` in base64 is `cG5n`.
    fn reference(&self, media_type: &str) -> ReferenceFile {
        let (_, name) = media_type.split_once('/').unwrap();
        let path = self.folder.path().join(name);
        std::fs::write(&path, name).unwrap();
        ReferenceFile {
            path,
            media_type: media_type.to_owned(),
        }
    }
}

/// The servers of an engine that uses `server`, with `key` in a file.
pub(crate) fn servers(
    case: &Case,
    server: &TestProvider,
    folder: &tempfile::TempDir,
    key: &str,
) -> RemoteServers {
    let path = folder.path().join("provider.key");
    std::fs::write(&path, key).unwrap();
    let upstream = UpstreamOptions {
        name: "a".to_owned(),
        base_url: server.base_url(),
        key: KeySource::File(path),
    };
    let mut options = RemoteOptions::new(case.dialect(), vec![upstream]);
    options.result_origins = vec![server.other_origin()];
    RemoteServers::new(options, Arc::new(JumpTimer::default()), clock()).unwrap()
}

/// A spec without inputs.
pub(crate) fn spec(case: &Case) -> VideoSpec {
    VideoSpec {
        version: SPEC_VERSION,
        model: "kinora-a1".to_owned(),
        prompt: "A boat \"on\" a lake".to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(case.seconds),
        frame: FrameSize::Fixed(case.size()),
        seed: 7,
        generate_audio: false,
        inputs: VideoInputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}

fn inputs(input: Input) -> VideoInputs {
    let url = |name: &str| format!("https://e.org/{name}");
    let frames = |first: &str, last: Option<String>| VideoInputs::Frames {
        first: first.to_owned(),
        last,
    };
    match input {
        Input::Text => VideoInputs::Text,
        Input::FirstFrame => frames(&url("1.png"), None),
        Input::UploadedFrame => frames("upload:uploads/file_01k3v8r2n8p5c1w9g7d4x6m2ta", None),
        Input::Frames => frames(&url("1.png"), Some(url("2.png"))),
        Input::Images => VideoInputs::References {
            images: vec![url("1.png"), url("2.png")],
            audios: Vec::new(),
        },
        Input::Sound => VideoInputs::References {
            images: vec![url("1.png")],
            audios: vec![url("3.mp3")],
        },
    }
}
