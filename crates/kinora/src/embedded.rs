//! The service inside the process of a test: the same composition as `kinora serve`, with a runtime, a log and a stop
//! of its own. Signals of the process, its standard error and its metrics are not touched.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use kinora_contract::Clock;
use kinora_store::KeyStore;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use tracing::Dispatch;
use tracing_subscriber::fmt::MakeWriter;

use crate::cli::{HomeArgs, ServeArgs};
use crate::config::Config;
use crate::failure::Failure;
use crate::keys::NewKeyParts;
use crate::stop::StopSignals;
use crate::system::{SystemClock, current_actor};
use crate::{compose, folder, logging, resources, serve};

/// Threads of a runtime: enough that a request and a run go on beside each other.
const RUNTIME_THREADS: usize = 2;

/// A service that runs. Dropping it stops it at once.
pub struct EmbeddedService {
    address: SocketAddr,
    keys: Arc<dyn KeyStore>,
    runtime: Handle,
    log: LogBuffer,
    signals: Option<UnboundedSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl EmbeddedService {
    /// Starts the service on a data folder, with the settings that `variables` have as those of a process's environment.
    ///
    /// # Errors
    /// The message with which `kinora serve` would have ended.
    pub fn start(data: &Path, variables: &[(String, String)]) -> Result<Self, String> {
        let args = ServeArgs {
            home: HomeArgs {
                data: Some(data.to_owned()),
                config: None,
            },
            listen: Some("127.0.0.1:0".parse()?),
            base_url: None,
            no_worker: false,
            log_format: None,
            open: false,
            accept_loss: false,
        };
        let mut variables = variables.to_vec();
        variables.push(("FILMS_IN_PROCESS".to_owned(), "1".to_owned()));
        let config = Config::for_serving_under(&args, &variables);
        let config = config.map_err(|failure| failure.to_string())?;
        folder::make_private_files();
        let log = LogBuffer::default();
        let dispatch = logging::json_to(log.clone(), &config.log.level);
        let dispatch = dispatch.map_err(|failure| failure.to_string())?;
        let (signals, received) = tokio::sync::mpsc::unbounded_channel();
        let (opened, open) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("service".to_owned())
            .spawn(move || {
                run(
                    &config,
                    &args.home,
                    &dispatch,
                    StopSignals::Test(received),
                    &opened,
                );
            })
            .map_err(|error| error.to_string())?;
        let (address, keys, runtime) = open
            .recv()
            .map_err(|_| "the service ended while it started".to_owned())??;
        Ok(Self {
            address,
            keys,
            runtime,
            log,
            signals: Some(signals),
            thread: Some(thread),
        })
    }

    /// Address that the service listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Log so far, one line of JSON for each event.
    pub fn log(&self) -> String {
        let bytes = self.log.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Makes a key with the scopes of a client, as `kinora keys create` does.
    ///
    /// # Errors
    /// The store's error.
    pub fn create_key(&self, project: &str) -> Result<String, String> {
        let parts = NewKeyParts::for_project(project);
        let made = parts.generate(SystemClock.now_ms());
        let (text, key) = made.map_err(|failure| failure.to_string())?;
        let added = self
            .runtime
            .block_on(self.keys.add_key(key, &current_actor()));
        added.map_err(|error| error.to_string())?;
        Ok(text.reveal().to_owned())
    }
}

impl Drop for EmbeddedService {
    fn drop(&mut self) {
        // The end of the channel counts as the first signal and as all that follow.
        self.signals = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the service has been printed by its thread.
            let _ = thread.join();
        }
    }
}

/// Address, key store and runtime of a service that is open, or the error that ended its start.
type OpenOutcome = Result<(SocketAddr, Arc<dyn KeyStore>, Handle), String>;

/// Serves to the end on this thread.
fn run(
    config: &Config,
    home: &HomeArgs,
    log: &Dispatch,
    signals: StopSignals,
    opened: &mpsc::SyncSender<OpenOutcome>,
) {
    let _log = tracing::dispatcher::set_default(log);
    let of_threads = log.clone();
    let built = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(RUNTIME_THREADS)
        .enable_all()
        .max_blocking_threads(compose::blocking_threads(config))
        .on_thread_start(move || {
            // For as long as the thread lives.
            // The guard would restore the previous dispatcher when this closure returns. The
            // threads belong to this runtime alone, so nothing has to be restored.
            std::mem::forget(tracing::dispatcher::set_default(&of_threads));
        })
        .build();
    let tell = |failure: &Failure| drop(opened.send(Err(failure.to_string())));
    let runtime = match built {
        Ok(runtime) => runtime,
        Err(error) => return tell(&Failure::because("The service could not start", error)),
    };
    runtime.block_on(async {
        let descriptors = resources::raise_descriptors(config.slots());
        let open = match serve::open(config, home, descriptors).await {
            Ok(open) => open,
            Err(failure) => return tell(&failure),
        };
        let keys = open.service.stores.keys.clone();
        let address = open.listener.local_addr();
        let address = address.map_err(|error| error.to_string());
        let _ = opened.send(address.map(|address| (address, keys, Handle::current())));
        if let Err(failure) = open.serve(config, signals).await {
            tracing::error!(%failure, "the service ended");
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
}

/// The bytes of a log.
#[derive(Clone, Debug, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogBuffer {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
