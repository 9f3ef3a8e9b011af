//! The two servers: Kinora's API over a real store on disk, without a worker; and the same
//! framework's own server with handlers that do nothing. Both share a runtime of their own.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use kinora_api::{Api, ApiSettings, ListenSettings, ListenerStop};
use kinora_blobs::sign::{SigningSecret, UrlSigner};
use kinora_blobs::{DiskReserve, S3Options};
use kinora_contract::{
    Clock, EntropySource, KeyText, ModelCatalog, NoEntropy, SteadyMs, UnixMs, built_in_cards,
};
use kinora_store::{KeyActor, KeyScope, NewKey, OpenOptions, StoreHandles, WorkerStore};
use kinora_system::scratch::ScratchFolder;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::load::Load;
use crate::outcome::Outcome;

const PROMPT: &str = "A red balloon drifts over a calm sea at dawn while gulls circle a lighthouse";

/// Both servers, running.
pub(crate) struct Servers {
    pub(crate) noop: SocketAddr,
    key: KeyText,
    runtime: Runtime,
}

/// Kinora on a store of its own, until it is dropped.
pub(crate) struct Kinora {
    pub(crate) address: SocketAddr,
    /// Its tasks, for what a worker would do.
    pub(crate) work: Arc<dyn WorkerStore>,
    served: tokio::task::JoinHandle<()>,
    _data: TempDir,
}

impl Drop for Kinora {
    fn drop(&mut self) {
        self.served.abort();
    }
}

impl Servers {
    /// Starts the server that does nothing, on a free port of this machine.
    pub(crate) fn start() -> Outcome<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("servers")
            .enable_all()
            .build()?;
        let key = KeyText::from_random(&random()?).ok_or("unusable random bytes")?;
        let noop = runtime.block_on(start_noop())?;
        Ok(Self { noop, key, runtime })
    }

    /// Starts Kinora on an empty store in the working folder, on its disk. Each window gets one,
    /// so that the queue stays as long as a bounded queue is.
    pub(crate) async fn kinora(&self) -> Outcome<Kinora> {
        let key = self.key.clone();
        self.runtime.spawn(start_kinora(key, None)).await?
    }

    /// Starts Kinora on the PostgreSQL store at this address.
    pub(crate) async fn kinora_over(&self, store: &str) -> Outcome<Kinora> {
        let (key, store) = (self.key.clone(), store.to_owned());
        self.runtime.spawn(start_kinora(key, Some(store))).await?
    }

    /// A submit.
    pub(crate) fn submit_request(&self) -> Load {
        vec![self.post("/v1/videos")]
    }

    /// The same bytes to the handler that does nothing.
    pub(crate) fn noop_post_request(&self) -> Load {
        vec![self.post("/noop")]
    }

    fn post(&self, path: &str) -> Vec<u8> {
        let body = format!(r#"{{"model":"kinora-a1","prompt":"{PROMPT}","seconds":5,"seed":7}}"#);
        format!(
            "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.key.reveal(),
            body.len()
        )
        .into_bytes()
    }

    /// A poll of each task.
    pub(crate) fn poll_requests(&self, ids: &[String]) -> Load {
        ids.iter()
            .map(|id| self.get(&format!("/v1/videos/{id}")))
            .collect()
    }

    /// A GET that is answered with so many bytes.
    pub(crate) fn noop_get_request(&self, bytes: usize) -> Load {
        vec![self.get(&format!("/noop/{bytes}"))]
    }

    /// A GET of Kinora's own that asks no store.
    pub(crate) fn health_request(&self) -> Load {
        vec![self.get("/healthz")]
    }

    /// The header line that other clients need.
    pub(crate) fn authorization(&self) -> String {
        format!("Authorization: Bearer {}", self.key.reveal())
    }

    fn get(&self, path: &str) -> Vec<u8> {
        let key = self.key.reveal();
        format!("GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n\r\n")
            .into_bytes()
    }
}

async fn start_kinora(key: KeyText, store: Option<String>) -> Outcome<Kinora> {
    let data = tempfile::Builder::new()
        .prefix("kinora-bench-")
        .tempdir_in(".")?;
    let path = data.path().join("kinora.db");
    let url = store.unwrap_or_else(|| format!("sqlite:{}", path.display()));
    let stores = kinora_store::open(&url, &OpenOptions::new(Arc::new(WallClock))).await?;
    if stores.keys.list_keys().await?.is_empty() {
        let by = KeyActor {
            user: "bench".to_owned(),
            host: "localhost".to_owned(),
        };
        stores.keys.add_key(new_key(&key), &by).await?;
    }
    let api = api(&stores, &data)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let settings = ListenSettings {
        connections_max: 10_000,
        header_timeout: Duration::from_secs(60),
        drain_limit: Duration::from_secs(1),
        request_id_prefix: random()?,
        clock: Arc::new(WallClock),
    };
    let router = kinora_api::router(api);
    let served = kinora_api::serve(listener, router, settings, ListenerStop::default());
    let served = tokio::spawn(served);
    Ok(Kinora {
        address,
        work: stores.work,
        served,
        _data: data,
    })
}

fn new_key(key: &KeyText) -> NewKey {
    NewKey {
        id: "key_bench".to_owned(),
        sha256: key.sha256(),
        name: "bench".to_owned(),
        project: "bench".to_owned(),
        scopes: KeyScope::VIDEOS.to_vec(),
        models: None,
        requests_per_minute: None,
        unfinished_max: Some(u32::MAX),
        budget: kinora_store::Budget::default(),
        created_at_ms: 0,
        expires_at_ms: None,
    }
}

fn api(stores: &StoreHandles, data: &TempDir) -> Outcome<Api> {
    Ok(Api {
        tasks: stores.tasks.clone(),
        files: stores.files.clone(),
        keys: stores.keys.clone(),
        webhooks: stores.webhooks.clone(),
        operations: stores.operations.clone(),
        pauses: stores.pauses.clone(),
        blobs: kinora_blobs::open(
            &data.path().join("results").display().to_string(),
            &S3Options::default(),
        )?,
        availability: kinora_api::ModelAvailability::new(
            stores.workers.clone(),
            stores.pauses.clone(),
            Arc::new(WallClock),
        ),
        catalog: Arc::new(ModelCatalog::new(built_in_cards())?),
        signer: Arc::new(UrlSigner::new(SigningSecret::new([7; 32]), None)),
        clock: Arc::new(WallClock),
        entropy: Arc::new(Generator::default()),
        settings: Arc::new(ApiSettings {
            base_url: "http://bench".to_owned(),
            waiting_max: u64::MAX,
            project_unfinished_max: u64::MAX,
            project_tasks_max: u64::MAX,
            project_bytes_max: u64::MAX,
            bytes_max: u64::MAX,
            reserve: DiskReserve::default(),
            budgets: kinora_api::ProjectBudgets::default(),
            failed_retention_ms: 1_000_000,
            redirects: false,
            form_uploads: false,
            studio: false,
            reference_ports: kinora_contract::reference_url::AllowedPorts::default(),
        }),
        gate: None,
        tracer: kinora_traces::TaskTracer::default(),
        uploads: kinora_api::Uploads::new(
            Arc::new(ScratchFolder::create(&data.path().join("work"))?),
            Arc::new(Semaphore::new(1)),
        ),
        turns: kinora_api::RequestTurns::default(),
        rendered: kinora_api::ObjectCache::default(),
        watch: kinora_api::TaskWatch::default(),
        readiness: kinora_contract::WorkerReadiness::default(),
        sign_in: None,
        lost: kinora_api::LostFiles::default(),
        stopping: CancellationToken::new(),
    })
}

async fn start_noop() -> Outcome<SocketAddr> {
    // As long as the answer to the submit.
    let accepted = Bytes::from("x".repeat(360));
    let router = Router::new()
        .route("/noop", post(move |_: Bytes| async move { accepted }))
        .route("/noop/{bytes}", axum::routing::get(filler));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        let _ = stream.set_nodelay(true);
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

async fn filler(path: axum::extract::Path<usize>) -> String {
    "x".repeat(path.0)
}

fn random<const N: usize>() -> Outcome<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[derive(Debug)]
struct WallClock;

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "a benchmark runs in real time")]
    fn now_ms(&self) -> UnixMs {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    #[expect(clippy::disallowed_methods, reason = "a benchmark runs in real time")]
    fn steady_ms(&self) -> SteadyMs {
        static BEGUN: OnceLock<Instant> = OnceLock::new();
        let elapsed = BEGUN.get_or_init(Instant::now).elapsed();
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Random bytes by the page, as in the binary: the system call is not what is measured.
#[derive(Debug, Default)]
struct Generator(Mutex<Vec<u8>>);

impl EntropySource for Generator {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        let mut page = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if page.len() < bytes.len() {
            page.resize(4096, 0);
            getrandom::fill(&mut page).map_err(|error| NoEntropy(error.to_string()))?;
        }
        let rest = page.len().saturating_sub(bytes.len());
        bytes.copy_from_slice(&page[rest..]);
        page.truncate(rest);
        Ok(())
    }
}
