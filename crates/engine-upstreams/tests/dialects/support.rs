//! A timer that moves by itself, a watcher that takes notes, and a run's surroundings. Nothing here
//! sleeps to be right.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::{FrameSize, Money, SPEC_VERSION, Size, VideoInputs, VideoLength, VideoSpec};
use kinora_engine_upstreams::dialects::{
    JobWatcher, ReferenceFile, RemoteError, RemoteOptions, RemoteRequest, RemoteServers,
    RemoteTicket, ServerDialect, WaitTimer,
};
use tokio_util::sync::CancellationToken;

use crate::server::Server;

/// A timer on which every wait is over at once, and noted.
#[derive(Debug, Default)]
pub(crate) struct JumpTimer(Mutex<(Duration, Vec<Duration>)>);

/// Passes in real time.
pub(crate) fn clock() -> Arc<dyn kinora_contract::Clock> {
    let begun = std::time::Instant::now();
    Arc::new(kinora_contract::RunningClock::at(0, move || {
        begun.elapsed()
    }))
}

impl JumpTimer {
    pub(crate) fn waits(&self) -> Vec<Duration> {
        self.0.lock().unwrap().1.clone()
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.0.lock().unwrap().0 += by;
    }
}

#[async_trait]
impl WaitTimer for JumpTimer {
    fn now(&self) -> Duration {
        self.0.lock().unwrap().0
    }

    async fn sleep(&self, duration: Duration) {
        {
            let mut state = self.0.lock().unwrap();
            state.0 += duration;
            state.1.push(duration);
        }
        tokio::task::yield_now().await;
    }
}

/// Takes notes; `refuses` to keep a ticket; `cancels` at the first sign of life of that fraction.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) tickets: Vec<RemoteTicket>,
    /// The ticket that a later run would find.
    pub(crate) kept: Option<RemoteTicket>,
    pub(crate) fractions: Vec<f64>,
    pub(crate) charged: Option<Money>,
    pub(crate) refuses: bool,
    pub(crate) cancels: Option<(f64, CancellationToken)>,
}

#[async_trait]
impl JobWatcher for Notes {
    async fn submitting(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.kept = Some(RemoteTicket::in_flight());
        Ok(())
    }

    async fn not_accepted(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.kept = None;
        Ok(())
    }

    async fn submitted(
        &mut self,
        ticket: &RemoteTicket,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.tickets.push(ticket.clone());
        self.kept = Some(ticket.clone());
        if self.refuses {
            return Err("the store is away".into());
        }
        Ok(())
    }

    fn charged(&mut self, charged: Money) {
        assert_eq!(self.charged.replace(charged), None, "told once");
    }

    fn alive(&mut self, fraction: f64) {
        self.fractions.push(fraction);
        if let Some((at, token)) = &self.cancels
            && fraction >= *at
        {
            token.cancel();
        }
    }
}

/// A run's surroundings.
pub(crate) struct Stage {
    pub(crate) remote: RemoteServers,
    pub(crate) timer: Arc<JumpTimer>,
    pub(crate) notes: Notes,
    pub(crate) cancel: CancellationToken,
    pub(crate) folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new(dialect: &str, servers: &[&Server]) -> Self {
        Self::with(dialect, servers, |_| {})
    }

    /// The upstreams are called `a`, `b`, `c`.
    pub(crate) fn with(
        dialect: &str,
        servers: &[&Server],
        change: impl FnOnce(&mut RemoteOptions),
    ) -> Self {
        Self::of(built_in(dialect), servers, change)
    }

    pub(crate) fn of(
        dialect: Arc<ServerDialect>,
        servers: &[&Server],
        change: impl FnOnce(&mut RemoteOptions),
    ) -> Self {
        let named = servers.iter().zip(["a", "b", "c"]);
        let upstreams = named.map(|(server, name)| server.upstream(name)).collect();
        let mut options = RemoteOptions::new(dialect, upstreams);
        change(&mut options);
        let timer = Arc::new(JumpTimer::default());
        Self {
            remote: RemoteServers::new(options, timer.clone(), clock()).unwrap(),
            timer,
            notes: Notes::default(),
            cancel: CancellationToken::new(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn result(&self) -> PathBuf {
        self.folder.path().join("result.mp4")
    }

    pub(crate) async fn run(&mut self) -> Result<u64, RemoteError> {
        self.run_request(&request(), None).await
    }

    pub(crate) async fn run_request(
        &mut self,
        request: &RemoteRequest,
        kept: Option<RemoteTicket>,
    ) -> Result<u64, RemoteError> {
        let to = self.result();
        let (notes, cancel) = (&mut self.notes, &self.cancel);
        self.remote.run(request, kept, &to, notes, cancel).await
    }

    /// A reference on disk.
    pub(crate) fn reference(&self, name: &str, media_type: &str, bytes: &[u8]) -> ReferenceFile {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        ReferenceFile {
            path,
            media_type: media_type.to_owned(),
        }
    }
}

/// The built-in dialect with this name.
pub(crate) fn built_in(dialect: &str) -> Arc<ServerDialect> {
    ServerDialect::named(dialect).unwrap()
}

pub(crate) fn is_absent(path: &Path) -> bool {
    !path.exists()
}

pub(crate) fn request() -> RemoteRequest {
    RemoteRequest {
        model: Some("wan-2.2".to_owned()),
        spec: VideoSpec {
            version: SPEC_VERSION,
            model: "kinora-a1".to_owned(),
            prompt: "A boat \"on\" a lake".to_owned(),
            negative_prompt: None,
            seconds: VideoLength::Fixed(5),
            frame: FrameSize::Fixed(Size::new(1280, 720)),
            seed: 7,
            generate_audio: false,
            inputs: VideoInputs::Text,
            draft: false,
            final_of: None,
            edit: None,
        },
        references: Vec::new(),
        audio_switch: false,
        key: "video_0001".to_owned(),
        avoid: Vec::new(),
    }
}
