//! A shelf for tickets, and a run's surroundings. Nothing here
//! sleeps to be right.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kinora_contract::VideoInputs;
use kinora_engine::{FilmJob, JobControl, TicketStore};
use kinora_engine_upstreams::dialects::{
    ReferenceFile, RemoteOptions, RemoteRequest, RemoteServers, RemoteTicket, ServerDialect,
    ServerOptions, UpstreamError,
};
use tokio_util::sync::CancellationToken;

use crate::common::{JumpTimer, clock, spec};
use crate::server::Server;

/// Keeps tickets, unless it `refuses` those of accepted tasks.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    tickets: Mutex<Vec<RemoteTicket>>,
    pub(crate) refuses: bool,
}

impl Shelf {
    /// The tickets of accepted tasks.
    pub(crate) fn accepted(&self) -> Vec<RemoteTicket> {
        let mut tickets = self.tickets.lock().unwrap().clone();
        tickets.retain(|ticket| !ticket.is_in_flight());
        tickets
    }

    /// The ticket that a later run would find.
    pub(crate) fn last(&self) -> Option<RemoteTicket> {
        self.tickets.lock().unwrap().last().cloned()
    }
}

#[async_trait]
impl TicketStore for Shelf {
    async fn store(&self, ticket: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut tickets = self.tickets.lock().unwrap();
        if ticket.is_empty() {
            tickets.clear();
            return Ok(());
        }
        let ticket: RemoteTicket = serde_json::from_str(ticket)?;
        if self.refuses && !ticket.is_in_flight() {
            return Err("the store is away".into());
        }
        tickets.push(ticket);
        Ok(())
    }
}

/// A run's surroundings.
pub(crate) struct Stage {
    pub(crate) remote: RemoteServers,
    pub(crate) timer: Arc<JumpTimer>,
    pub(crate) shelf: Shelf,
    pub(crate) control: JobControl,
    /// Cancels at this sign of life.
    pub(crate) cancels_at: Option<u64>,
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
        let mut options = RemoteOptions::new(dialect, ServerOptions::new(upstreams));
        change(&mut options);
        let timer = Arc::new(JumpTimer::default());
        Self {
            remote: RemoteServers::new(options, timer.clone(), clock()).unwrap(),
            timer,
            shelf: Shelf::default(),
            control: JobControl::default(),
            cancels_at: None,
            cancel: CancellationToken::new(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn result(&self) -> PathBuf {
        self.folder.path().join("result.mp4")
    }

    pub(crate) async fn run(&self) -> Result<u64, UpstreamError> {
        self.run_request(&request(), None).await
    }

    pub(crate) async fn run_request(
        &self,
        request: &RemoteRequest,
        kept: Option<RemoteTicket>,
    ) -> Result<u64, UpstreamError> {
        let job = FilmJob {
            key: &request.key,
            spec: &request.spec,
            references: &request.references,
            source: None,
            ticket: None,
            to: &self.result(),
            control: &self.control,
            cancel: &self.cancel,
            tickets: &self.shelf,
        };
        let cancelling = async {
            let at = self.cancels_at.unwrap_or(u64::MAX);
            while self.control.progress.reports() < at {
                tokio::task::yield_now().await;
            }
            self.cancel.cancel();
        };
        let run = self.remote.run(request, kept, &job);
        if self.cancels_at.is_none() {
            return run.await;
        }
        tokio::join!(run, cancelling).0
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
        spec: spec(VideoInputs::Text),
        references: Vec::new(),
        audio_switch: false,
        key: "video_0001".to_owned(),
        avoid: Vec::new(),
    }
}
