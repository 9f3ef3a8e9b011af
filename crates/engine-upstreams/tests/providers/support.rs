//! An engine as the ready-made configuration of a provider defines it, in front of the provider's stand-in.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kinora_contract::{FailureCode, VideoInputs, VideoSpec};
use kinora_engine::conformance::film::{FilmSite, WorkFate};
use kinora_engine::{
    EngineError, EngineKind, EngineOutput, FilmEngine, FilmJob, JobControl, ReferenceFile,
    TicketStore,
};
use kinora_engine_upstreams::dialects::RemoteKind;
use kinora_testkit::providers::{Fate, TestProvider};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toml::Table;

use crate::common::{MP4, clock, spec};

/// A key of two parts, as some providers sign with the second.
pub(crate) const KEY: &str = "marked-access:marked-secret";
pub(crate) const FIRST: &str = "https://e.org/first.png";
pub(crate) const LAST: &str = "https://e.org/last.png";
pub(crate) const FACE: &str = "https://e.org/face.png";
pub(crate) const PLACE: &str = "https://e.org/place.png";
pub(crate) const VOICE: &str = "https://e.org/voice.mp3";

/// Kinds of input, each with the line and the body of its submit.
pub(crate) type Requests = Vec<(VideoInputs, &'static str, Value)>;

/// A provider as the tests see it.
pub(crate) struct ProviderCase {
    /// The name of its dialect, and of its file in `models/`.
    pub(crate) name: &'static str,
    /// The engine in that file which the tests use.
    pub(crate) engine: &'static str,
    /// Starts its stand-in, which takes this key.
    pub(crate) start: fn(&str) -> TestProvider,
    /// Changes a request of 5 seconds in 1280x720 to what its model takes.
    pub(crate) fit: fn(&mut VideoSpec),
    /// Each kind of input that the engine takes, and the line and the body of its submit.
    pub(crate) requests: fn() -> Requests,
    /// Whether a job can be cancelled, and also when it runs.
    pub(crate) cancels: (bool, bool),
    /// Whether it says how far a job is.
    pub(crate) reports_progress: bool,
    /// Whether it refuses submits because of their content.
    pub(crate) moderates_submits: bool,
    /// Whether it answers a wrong key otherwise than a wrong request.
    pub(crate) tells_wrong_keys: bool,
    /// Whether it takes pictures inside a request.
    pub(crate) takes_data: bool,
    /// Whether films may be at other origins.
    pub(crate) links_films: bool,
}

/// An engine, and the stand-in behind it.
pub(crate) struct Studio {
    pub(crate) case: &'static ProviderCase,
    pub(crate) provider: TestProvider,
    pub(crate) engine: Arc<dyn FilmEngine>,
    folder: tempfile::TempDir,
}

impl Studio {
    pub(crate) fn open(case: &'static ProviderCase) -> Self {
        Self::with(case, KEY, |_, _| {})
    }

    /// An engine with this key and with changed settings.
    pub(crate) fn with(
        case: &'static ProviderCase,
        key: &str,
        change: impl FnOnce(&mut Table, &TestProvider),
    ) -> Self {
        let mut engines = engines(case.name).into_iter();
        let settings = engines.find(|one| one["name"].as_str() == Some(case.engine));
        Self::of(case, settings.unwrap(), key, change)
    }

    /// An engine of these settings.
    pub(crate) fn of(
        case: &'static ProviderCase,
        mut settings: Table,
        key: &str,
        change: impl FnOnce(&mut Table, &TestProvider),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let provider = (case.start)(KEY);
        set_for_test(&mut settings, &provider.base_url(), folder.path(), key);
        change(&mut settings, &provider);
        Self {
            case,
            provider,
            engine: connect(settings),
            folder,
        }
    }

    /// Runs a task to its end, changed to what the provider's model takes.
    pub(crate) async fn film(&self, spec: &VideoSpec) -> Result<(), EngineError> {
        let mut spec = spec.clone();
        (self.case.fit)(&mut spec);
        self.film_unchanged(&spec).await
    }

    /// Runs a task to its end.
    pub(crate) async fn film_unchanged(&self, spec: &VideoSpec) -> Result<(), EngineError> {
        self.film_with(spec, &JobControl::default()).await
    }

    /// Runs a task to its end, which reports to `control`.
    pub(crate) async fn film_with(
        &self,
        spec: &VideoSpec,
        control: &JobControl,
    ) -> Result<(), EngineError> {
        let references: Vec<_> = spec.inputs.references().iter().map(|_| ()).collect();
        let file = self.folder.path().join("reference");
        std::fs::write(&file, b"face").unwrap();
        let reference = ReferenceFile {
            path: file,
            media_type: "image/png".to_owned(),
        };
        let _ = std::fs::remove_file(self.to());
        let job = FilmJob {
            key: "video_0001",
            spec,
            references: &vec![reference; references.len()],
            source: None,
            ticket: None,
            to: &self.to(),
            control,
            cancel: &CancellationToken::new(),
            tickets: &Shelf::default(),
        };
        self.engine.film(&job).await
    }
}

/// Keeps tickets for nobody.
#[derive(Default)]
struct Shelf(Mutex<Vec<String>>);

#[async_trait]
impl TicketStore for Shelf {
    async fn store(&self, ticket: &str) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.0.lock().unwrap().push(ticket.to_owned());
        Ok(())
    }
}

/// The ready-made configuration with this name.
pub(crate) fn configuration(name: &str) -> Table {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let text = std::fs::read_to_string(models.join(format!("{name}.toml"))).unwrap();
    text.parse().unwrap()
}

/// The engines of a ready-made configuration.
pub(crate) fn engines(name: &str) -> Vec<Table> {
    let engines = configuration(name)["engines"].as_array().unwrap().clone();
    let table = |engine: toml::Value| engine.as_table().unwrap().clone();
    engines.into_iter().map(table).collect()
}

/// The settings with another server, a key of the test, and no waits.
pub(crate) fn set_for_test(settings: &mut Table, base_url: &str, folder: &Path, key: &str) {
    let file = folder.join("key");
    std::fs::write(&file, key).unwrap();
    settings.remove("key_variable").unwrap();
    settings.insert("key_file".to_owned(), file.to_str().unwrap().into());
    settings.insert("base_urls".to_owned(), vec![base_url.to_owned()].into());
    settings.insert("poll_milliseconds".to_owned(), 1.into());
}

/// The engine of these settings.
pub(crate) fn connect(mut settings: Table) -> Arc<dyn FilmEngine> {
    let name = settings.remove("name").unwrap();
    assert_eq!(settings.remove("kind"), Some("remote".into()));
    let kind: RemoteKind = settings.try_into().unwrap();
    kind.check(false).unwrap();
    match kind.output() {
        EngineOutput::Films(films) => films.engine(name.as_str().unwrap(), clock()).unwrap(),
        EngineOutput::Frames(_) => panic!("films are made by other servers"),
    }
}

/// `body` with the fields of `more`.
pub(crate) fn and(body: &Value, more: Value) -> Value {
    let mut body = body.clone();
    let Value::Object(more) = more else {
        unreachable!("an object")
    };
    body.as_object_mut().unwrap().extend(more);
    body
}

impl FilmSite for Studio {
    fn engine(&self) -> &dyn FilmEngine {
        &*self.engine
    }

    fn spec(&self) -> VideoSpec {
        let mut spec = spec(VideoInputs::Text);
        (self.case.fit)(&mut spec);
        spec
    }

    fn to(&self) -> PathBuf {
        self.folder.path().join("film.mp4")
    }

    fn turn(&self, fate: WorkFate) {
        let endless = if self.case.cancels.1 {
            Fate::Endless
        } else {
            Fate::Waiting
        };
        self.provider.set(|behaviour| {
            behaviour.is_silent = fate == WorkFate::Silent;
            behaviour.fate = match fate {
                WorkFate::Succeeding => Fate::Succeeding,
                WorkFate::Endless | WorkFate::Silent => endless,
                WorkFate::Failing => Fate::Failing,
            };
        });
    }

    fn film(&self) -> Vec<u8> {
        MP4.to_vec()
    }

    fn failure(&self) -> FailureCode {
        FailureCode::GenerationFailed
    }

    fn begun(&self) -> usize {
        self.provider.submits().len()
    }

    fn looks(&self) -> usize {
        self.provider.looks()
    }

    fn cancelled(&self) -> usize {
        self.provider.cancelled()
    }

    fn can_cancel(&self) -> bool {
        self.case.cancels.0
    }

    fn reports_progress(&self) -> bool {
        self.case.reports_progress
    }
}
