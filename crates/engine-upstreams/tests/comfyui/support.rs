//! An engine on servers, and a shelf for tickets.

use std::error::Error;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use hyper::HeaderMap;
use kinora_contract::{FrameSize, Size, VideoInputs, VideoSpec};
use kinora_engine::{EngineError, FilmEngine, FilmJob, JobControl, ReferenceFile, TicketStore};
use kinora_engine_upstreams::comfyui::{
    ComfyEngine, ComfyServers, NamedServer, ServerOptions, SystemTimer, Workflow, WorkflowBindings,
    WorkflowCard,
};
use kinora_testkit::comfyui::TestComfy;
use tokio_util::sync::CancellationToken;

use crate::common::{JumpTimer, clock, frames};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const BINDINGS: &str = r#"
prompt = "6.text"
negative_prompt = "7.text"
seed = "3.seed"
width = "5.width"
height = "5.height"
frames = "5.length"
fps = "8.fps"
first_frame = "10.image"
output = "9"
optional = ["first_frame"]
"#;

pub(crate) fn card(workflow: &serde_json::Value, bindings: &str) -> WorkflowCard {
    let workflow = Workflow::read(workflow.to_string().as_bytes()).unwrap();
    let bindings: WorkflowBindings = toml::from_str(bindings).unwrap();
    let describe = "fps = 16\nsize_multiple = 16\nframes = { step = 4, offset = 1 }";
    WorkflowCard::new(workflow, bindings, toml::from_str(describe).unwrap()).unwrap()
}

fn options(urls: Vec<String>) -> ServerOptions {
    let servers = urls.into_iter().map(|url| NamedServer {
        name: url.clone(),
        base_url: url,
    });
    ServerOptions {
        poll_every: Duration::from_secs(1),
        answer_bytes_max: 16 << 20,
        silence_max: Duration::from_mins(10),
        ..ServerOptions::new(servers.collect())
    }
}

fn jumping(card: WorkflowCard, options: ServerOptions) -> ComfyEngine {
    let timer = Arc::new(JumpTimer::default());
    let comfy = ComfyServers::new(card, options, &HeaderMap::new(), timer, clock());
    ComfyEngine::new(comfy.unwrap(), "wan")
}

/// An engine whose waits are over at once.
pub(crate) fn engine(card: WorkflowCard, servers: &[&TestComfy]) -> ComfyEngine {
    let urls = servers.iter().map(|server| server.base_url()).collect();
    jumping(card, options(urls))
}

/// The same, which does not wait long for an answer when it frees memory.
pub(crate) fn hasty(card: WorkflowCard, servers: &[&TestComfy]) -> ComfyEngine {
    let urls = servers.iter().map(|server| server.base_url()).collect();
    let options = ServerOptions {
        probe_timeout: Duration::from_millis(200),
        ..options(urls)
    };
    jumping(card, options)
}

/// An engine that polls a few times a second, with these headers.
pub(crate) fn patient(card: WorkflowCard, url: String, headers: &[(&str, &str)]) -> ComfyEngine {
    let headers = headers.iter();
    let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
    let options = ServerOptions {
        poll_every: Duration::from_millis(50),
        ..options(vec![url])
    };
    let timer = Arc::new(SystemTimer::new(clock()));
    let comfy = ComfyServers::new(card, options, &headers.collect(), timer, clock());
    ComfyEngine::new(comfy.unwrap(), "wan")
}

/// Keeps every ticket, with the number of jobs that `server` had begun at that moment.
#[derive(Default)]
pub(crate) struct Shelf {
    pub(crate) tickets: Mutex<Vec<(String, usize)>>,
    server: Option<Arc<TestComfy>>,
}

#[async_trait]
impl TicketStore for Shelf {
    async fn store(&self, ticket: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        let begun = self
            .server
            .as_ref()
            .map_or(0, |server| server.begun().len());
        self.tickets
            .lock()
            .unwrap()
            .push((ticket.to_owned(), begun));
        Ok(())
    }
}

/// One task.
pub(crate) struct Task {
    /// Its job's name follows from it.
    pub(crate) key: String,
    pub(crate) spec: VideoSpec,
    pub(crate) references: Vec<ReferenceFile>,
    pub(crate) source: Option<ReferenceFile>,
    pub(crate) ticket: Option<String>,
    pub(crate) control: JobControl,
    pub(crate) cancel: CancellationToken,
    pub(crate) shelf: Shelf,
    folder: tempfile::TempDir,
}

impl Default for Task {
    fn default() -> Self {
        Self {
            key: "video_0001".to_owned(),
            spec: spec(),
            references: Vec::new(),
            source: None,
            ticket: None,
            control: JobControl::default(),
            cancel: CancellationToken::new(),
            shelf: Shelf::default(),
            folder: tempfile::tempdir().unwrap(),
        }
    }
}

impl Task {
    /// A task that notes what `server` has begun whenever it keeps a ticket.
    pub(crate) fn watching(server: &Arc<TestComfy>) -> Self {
        let mut task = Self::default();
        task.shelf.server = Some(server.clone());
        task
    }

    pub(crate) fn to(&self) -> PathBuf {
        self.folder.path().join("film.mp4")
    }

    /// A file of the request.
    pub(crate) fn file(&self, name: &str, media_type: &str) -> ReferenceFile {
        let path = self.folder.path().join(name);
        std::fs::write(&path, name).unwrap();
        ReferenceFile {
            path,
            media_type: media_type.to_owned(),
        }
    }

    pub(crate) async fn film(&self, engine: &dyn FilmEngine) -> Result<(), EngineError> {
        let to = self.to();
        let job = FilmJob {
            key: &self.key,
            spec: &self.spec,
            references: &self.references,
            source: self.source.as_ref(),
            ticket: self.ticket.as_deref(),
            to: &to,
            control: &self.control,
            cancel: &self.cancel,
            tickets: &self.shelf,
        };
        engine.film(&job).await
    }

    /// Makes the film, which must come.
    pub(crate) async fn must_film(&self, engine: &dyn FilmEngine) -> Vec<u8> {
        self.film(engine).await.unwrap();
        std::fs::read(self.to()).unwrap()
    }
}

/// Waits until `is_so`.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A request in the size of a usual workflow.
pub(crate) fn spec() -> VideoSpec {
    VideoSpec {
        frame: FrameSize::Fixed(Size::new(854, 480)),
        ..crate::common::spec(VideoInputs::Text)
    }
}

pub(crate) fn first_frame() -> VideoInputs {
    frames("https://host/a.png", None)
}
