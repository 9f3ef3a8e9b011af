//! A model in a server of stable-diffusion.cpp: the path of a job through it to a sink. The server
//! cannot stop a job, so a cancel kills it, and the next job starts another one.

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, Request, Response};
use kinora_contract::{VideoSpec, Warning};
use kinora_engine::{
    ClipPlan, ClipPlanner, ClipSink, Engine, EngineDescription, EngineError, FrameJob, JobControl,
    JobMaterials, WorkStage,
};
use kinora_http::{ClientOptions, HttpClient, TrustedRoots, error_chain};
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};

use crate::arguments;
use crate::family::Variant;
use crate::film;
use crate::generation::Generation;
use crate::inputs::Pictures;
use crate::log::ServerLog;
use crate::model::Model;
use crate::process::{ServerProcess, Tick};
use crate::program::ServerProgram;
use crate::request::{self, AcceptedJob, Capabilities, ServerJob};

/// How long a server may load weights. 100 GB from a slow disk take a quarter of an hour.
const START_LIMIT: Duration = Duration::from_mins(30);
/// How often to look for a cancel and for progress.
const TICK: Duration = Duration::from_millis(50);
/// How many ticks lie between two questions about a job.
const TICKS_PER_QUESTION: u32 = 5;
/// The server parses control frames and packs films within its answers: seconds each.
const ANSWER_LIMIT: Duration = Duration::from_mins(2);
/// More than any answer without a film has.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Bytes per second of the most sound that any model makes: eight channels of 16 bits at 48 kHz.
const SOUND_BYTES_PER_SECOND: u64 = 8 * 2 * 48_000;

/// A model in a server of its own. Jobs wait for each other.
pub struct ServerEngine {
    model: Model,
    program: ServerProgram,
    start_limit: Duration,
    runtime: Runtime,
    client: HttpClient,
    /// The server; `None` after a cancel or a failure.
    process: Mutex<Option<RunningServer>>,
}

/// A server, and what it can do.
struct RunningServer {
    process: ServerProcess,
    offered: Capabilities,
}

impl RunningServer {
    /// The server, unless it has exited.
    fn if_running(self) -> Option<Self> {
        let process = self.process.if_running()?;
        Some(Self { process, ..self })
    }
}

impl fmt::Debug for ServerEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerEngine").field(&self.model).finish()
    }
}

impl ServerEngine {
    /// Starts the server `program` with a model and `arguments` of the operator; waits until it has
    /// loaded the weights.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] if this version of the server lacks an option, a sampler or a
    /// scheduler; [`EngineError::Failed`] and [`EngineError::OutOfMemory`] with the server's last
    /// lines.
    pub fn open(model: Model, program: &Path, arguments: Vec<String>) -> Result<Self, EngineError> {
        Self::open_within(model, program, arguments, START_LIMIT)
    }

    /// The same, if the server listens within `start_limit`, now and whenever it starts again.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_within(
        model: Model,
        program: &Path,
        arguments: Vec<String>,
        start_limit: Duration,
    ) -> Result<Self, EngineError> {
        let options = arguments::options(model.settings());
        let failed = |error: &dyn fmt::Display| EngineError::Failed(error.to_string());
        let tls = TrustedRoots::none()
            .client_config()
            .map_err(|error| failed(&error))?;
        let options_of_client = ClientOptions {
            // The server closes idle connections at any time.
            idle_max: 0,
            ..ClientOptions::default()
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        let engine = Self {
            program: ServerProgram::open(program, options, arguments)?,
            model,
            start_limit,
            runtime: runtime.map_err(|error| failed(&error))?,
            client: HttpClient::new(tls, options_of_client, None),
            process: Mutex::default(),
        };
        let started = engine.start(&mut |_| Ok(()))?;
        *engine.lock() = Some(started);
        Ok(engine)
    }

    fn lock(&self) -> MutexGuard<'_, Option<RunningServer>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a server that can make this model's videos.
    fn start(&self, tick: &mut Tick<'_>) -> Result<RunningServer, EngineError> {
        let mut server = ServerProcess::start(&self.program, self.start_limit, tick)?;
        let path = "/sdcpp/v1/capabilities";
        let answer = self.exchange(&mut server, Method::GET, path, Bytes::new(), tick)?;
        let offered: Capabilities = parse(answer.body())?;
        let unsupported = |what: String| Err(EngineError::Unsupported(what));
        if !offered.supported_modes.iter().any(|mode| mode == "vid_gen") {
            return unsupported("the server makes no videos with this model".to_owned());
        }
        let settings = self.model.settings();
        offered.check(settings.sampler, settings.scheduler)?;
        Ok(RunningServer {
            process: server,
            offered,
        })
    }

    /// Makes a film; returns the file. After any error the server is gone: it may still be at work,
    /// or have no memory left.
    fn render(
        &self,
        made: &Generation,
        body: Vec<u8>,
        control: &JobControl,
    ) -> Result<Vec<u8>, EngineError> {
        let mut process = self.lock();
        let running = process.take().and_then(RunningServer::if_running);
        let mut server = match running {
            Some(running) => running,
            // Loading weights is a part of this job.
            None => self.start(&mut watch(control, WorkStage::Preparing))?,
        };
        if let Err(error) = server.offered.check(made.sampler, made.scheduler) {
            // It has not begun, and has its weights.
            *process = Some(server);
            return Err(error);
        }
        server.process.log.begin_job(made.steps);
        let film = self.run(&mut server.process, made, body, control)?;
        *process = Some(server);
        Ok(film)
    }

    fn run(
        &self,
        server: &mut ServerProcess,
        made: &Generation,
        body: Vec<u8>,
        control: &JobControl,
    ) -> Result<Vec<u8>, EngineError> {
        let mut tick = watch(control, WorkStage::Generating);
        let path = "/sdcpp/v1/vid_gen";
        let answer = self.exchange(server, Method::POST, path, body.into(), &mut tick)?;
        let job: AcceptedJob = parse(answer.body())?;
        let path = format!("/sdcpp/v1/jobs/{}", job.id);
        loop {
            for _ in 0..TICKS_PER_QUESTION {
                thread::sleep(TICK);
                tick(&server.log)?;
            }
            let (nothing, limit) = (Bytes::new(), film_answer_bytes(made));
            let answer =
                self.exchange_up_to(server, Method::GET, &path, nothing, &mut tick, limit)?;
            let job: ServerJob<'_> = parse_borrowed(answer.body())?;
            match (&*job.status, job.result, job.error) {
                ("completed", Some(film), _) => return film.decode(),
                ("queued" | "generating", ..) => {}
                (_, _, Some(error)) => return Err(server.log.failure(&error.message)),
                (status, ..) => return Err(server.log.failure(&format!("the job is {status}"))),
            }
        }
    }

    fn exchange(
        &self,
        server: &mut ServerProcess,
        method: Method,
        path: &str,
        body: Bytes,
        tick: &mut Tick<'_>,
    ) -> Result<Response<Bytes>, EngineError> {
        self.exchange_up_to(server, method, path, body, tick, ANSWER_BYTES_MAX)
    }

    /// Asks the server; calls `tick` while it is silent. An answer without success is an error.
    fn exchange_up_to(
        &self,
        server: &mut ServerProcess,
        method: Method,
        path: &str,
        body: Bytes,
        tick: &mut Tick<'_>,
        answer_bytes_max: usize,
    ) -> Result<Response<Bytes>, EngineError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://127.0.0.1:{}{path}", server.port()))
            .header("content-type", "application/json")
            .body(body)
            .map_err(|error| EngineError::Failed(error.to_string()))?;
        let answered = self.runtime.block_on(async {
            let mut exchange = std::pin::pin!(self.client.exchange(
                request,
                ANSWER_LIMIT,
                answer_bytes_max
            ));
            loop {
                if let Ok(answered) = tokio::time::timeout(TICK, &mut exchange).await {
                    return Ok(answered);
                }
                tick(&server.log)?;
            }
        })?;
        let answer = answered.map_err(|error| server.broken_connection(&error_chain(&error)))?;
        if !answer.status().is_success() {
            let why = request::refusal(answer.body());
            let what = format!("the server refuses {path}: {}: {why}", answer.status());
            return Err(server.log.failure(&what));
        }
        Ok(answer)
    }
}

/// Reports progress when the server has printed something since the last call: one without a sign of life must not look alive.
/// Always looks for a cancel.
fn watch(
    control: &JobControl,
    stage: WorkStage,
) -> impl FnMut(&ServerLog) -> Result<(), EngineError> + '_ {
    let mut seen = 0;
    move |log| {
        let (entries, done) = log.progress();
        if entries == seen {
            return match control.cancel.is_cancelled() {
                true => Err(EngineError::Cancelled),
                false => Ok(()),
            };
        }
        seen = entries;
        // Loading is the end of the preparations, however far it is.
        let is_loading = stage == WorkStage::Preparing;
        control.report(stage, if is_loading { 1.0 } else { done })
    }
}

/// The most bytes of an answer with the film of a job: no frame's JPEG is larger than its pixels,
/// and Base64 makes four bytes of three.
fn film_answer_bytes(made: &Generation) -> usize {
    let frames = u64::from(made.frames) + 16;
    let pixels = made.rendered.pixels() * 3 * frames;
    let sound = frames * SOUND_BYTES_PER_SECOND / u64::from(made.fps.max(1));
    let bytes = (pixels + sound) * 4 / 3;
    usize::try_from(bytes)
        .unwrap_or(usize::MAX)
        .saturating_add(ANSWER_BYTES_MAX)
}

fn unreadable(error: &serde_json::Error) -> EngineError {
    EngineError::Failed(format!("the server's answer cannot be read: {error}"))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, EngineError> {
    serde_json::from_slice(body).map_err(|error| unreadable(&error))
}

fn parse_borrowed(body: &[u8]) -> Result<ServerJob<'_>, EngineError> {
    serde_json::from_slice(body).map_err(|error| unreadable(&error))
}

impl ClipPlanner for ServerEngine {
    fn describe(&self) -> &EngineDescription {
        self.model.describe()
    }

    fn plan(&self, spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError> {
        self.model.plan(spec, materials)
    }

    fn warnings(&self, spec: &VideoSpec, materials: &JobMaterials) -> Vec<Warning> {
        self.model.warnings(spec, materials)
    }
}

impl Engine for ServerEngine {
    /// Obeys a cancel at any time, by killing the server. Shows no previews, which it does not have.
    fn generate(
        &self,
        job: &FrameJob<'_>,
        sink: &mut dyn ClipSink,
        control: &JobControl,
    ) -> Result<(), EngineError> {
        control.report(WorkStage::Preparing, 0.0)?;
        let with_preset = job.preset.map(|preset| self.model.with_preset(preset));
        let with_preset = with_preset.transpose()?;
        let model = with_preset.as_ref().unwrap_or(&self.model);
        let made = model.generation(job.spec, job.materials)?;
        if made.clip() != job.clip {
            let why = "the clip does not match its plan";
            return Err(EngineError::Failed(why.to_owned()));
        }
        let is_ti2v = self.model.settings().variant == Some(Variant::Ti2v);
        if made.end.is_some() && is_ti2v && !self.program.ends_ti2v_clips {
            let why = "this version of sd-server ignores the last frame of Wan 2.2 TI2V; install a newer one, or set \
                `last_frame = false` in the model's `features`";
            return Err(EngineError::Unsupported(why.to_owned()));
        }
        let pictures = Pictures::of(&made, job.materials, control)?;
        let body = request::video_request(&made, &pictures)?;
        drop(pictures);
        control.report(WorkStage::Preparing, 1.0)?;
        let file = self.render(&made, body, control)?;
        film::hand_over(&file, &made, sink, control)?;
        control.report(WorkStage::Finishing, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_prints_looks_alive_and_a_silent_one_can_be_cancelled() {
        let (control, log) = (JobControl::default(), ServerLog::new());
        let mut tick = watch(&control, WorkStage::Preparing);
        for (printed, reports) in [("", 0), ("[INFO ] loading\n", 1), ("", 1), ("more\n", 2)] {
            log.collect(printed.as_bytes(), false);
            tick(&log).unwrap();
            tick(&log).unwrap();
            assert_eq!(control.progress.reports(), reports, "{printed}");
        }
        control.cancel.cancel();
        assert!(matches!(tick(&log), Err(EngineError::Cancelled)));
    }
}
