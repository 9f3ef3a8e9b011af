//! A model in a server of stable-diffusion.cpp: the path of a job through it to a sink. The server
//! cannot stop a job, so a cancel kills it, and the next job starts another one.

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, Request};
use kinora_contract::VideoSpec;
use kinora_engine::{
    ClipPlan, ClipPlanner, ClipSink, Engine, EngineDescription, EngineError, FrameJob, JobControl,
    JobMaterials, WorkStage,
};
use kinora_http::{ClientOptions, HttpClient, TrustedRoots, error_chain};
use serde::Deserialize;
use tokio::runtime::{Builder, Runtime};

use crate::arguments;
use crate::family::Variant;
use crate::film;
use crate::generation::Generation;
use crate::log::ServerLog;
use crate::model::Model;
use crate::process::{ServerProcess, Tick};
use crate::program::ServerProgram;
use crate::request::{self, AcceptedJob, Capabilities, ServerJob};
use crate::settings::Settings;

/// How long a server may load weights. 100 GB from a slow disk take a quarter of an hour.
pub const START_LIMIT: Duration = Duration::from_mins(30);
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

impl fmt::Debug for ServerEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerEngine").field(&self.model).finish()
    }
}

impl ServerEngine {
    /// Starts the server `program` with a model and `arguments` of the operator; waits until it has
    /// loaded the weights. It has `start_limit` for that, now and whenever it starts again.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] if this version of the server lacks an option, a sampler or a
    /// scheduler; [`EngineError::Failed`] and [`EngineError::OutOfMemory`] with the server's last
    /// lines.
    pub fn open(
        model: Model,
        program: &Path,
        arguments: Vec<String>,
        start_limit: Duration,
    ) -> Result<Self, EngineError> {
        let options = arguments::options(model.settings());
        let tls = TrustedRoots::none().client_config().map_err(failed)?;
        // The server closes idle connections at any time.
        let client_options = ClientOptions {
            idle_max: 0,
            ..ClientOptions::default()
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        let engine = Self {
            program: ServerProgram::open(program, options, arguments)?,
            model,
            start_limit,
            runtime: runtime.map_err(failed)?,
            client: HttpClient::new(tls, client_options, None),
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
        let mut process = ServerProcess::start(&self.program, self.start_limit, tick)?;
        let path = "/sdcpp/v1/capabilities";
        let answer = self.exchange(&mut process, path, None, ANSWER_BYTES_MAX, tick)?;
        let offered: Capabilities = parse(&answer)?;
        if !offered.supported_modes.iter().any(|mode| mode == "vid_gen") {
            let why = "the server makes no videos with this model";
            return Err(EngineError::Unsupported(why.to_owned()));
        }
        offered.check(self.model.settings())?;
        Ok(RunningServer { process, offered })
    }

    /// Makes a film; returns the file. After any error the server is gone: it may still be at work,
    /// or have no memory left.
    fn render(
        &self,
        made: &Generation<'_>,
        settings: &Settings,
        body: Vec<u8>,
        control: &JobControl,
    ) -> Result<Vec<u8>, EngineError> {
        let mut running = self.lock();
        let mut server = match running.take_if(|server| server.process.is_running()) {
            Some(server) => server,
            // Loading weights is a part of this job.
            None => self.start(&mut watch(control, WorkStage::Preparing))?,
        };
        if let Err(error) = server.offered.check(settings) {
            // It has not begun, and has its weights.
            *running = Some(server);
            return Err(error);
        }
        server.process.log.begin_job(made.steps);
        let film = self.run(&mut server.process, made, body, control)?;
        *running = Some(server);
        Ok(film)
    }

    fn run(
        &self,
        server: &mut ServerProcess,
        made: &Generation<'_>,
        body: Vec<u8>,
        control: &JobControl,
    ) -> Result<Vec<u8>, EngineError> {
        let mut tick = watch(control, WorkStage::Generating);
        let (path, body) = ("/sdcpp/v1/vid_gen", Some(body));
        let answer = self.exchange(server, path, body, ANSWER_BYTES_MAX, &mut tick)?;
        let job: AcceptedJob = parse(&answer)?;
        let path = format!("/sdcpp/v1/jobs/{}", job.id);
        loop {
            for _ in 0..TICKS_PER_QUESTION {
                thread::sleep(TICK);
                tick(&server.log)?;
            }
            let answer = self.exchange(server, &path, None, film_answer_bytes(made), &mut tick)?;
            let job: ServerJob<'_> = parse(&answer)?;
            match (&*job.status, job.result, job.error) {
                ("completed", Some(film), _) => return film.decode(),
                ("queued" | "generating", ..) => {}
                (_, _, Some(error)) => return Err(server.log.failure(&error.message)),
                (status, ..) => return Err(server.log.failure(&format!("the job is {status}"))),
            }
        }
    }

    /// Posts `body` to the server, or gets an answer without one; calls `tick` while the server is silent. An answer without
    /// success is an error.
    fn exchange(
        &self,
        server: &mut ServerProcess,
        path: &str,
        body: Option<Vec<u8>>,
        answer_bytes_max: usize,
        tick: &mut Tick<'_>,
    ) -> Result<Bytes, EngineError> {
        let request = Request::builder()
            .method(body.as_ref().map_or(Method::GET, |_| Method::POST))
            .uri(format!("http://127.0.0.1:{}{path}", server.port))
            .header("content-type", "application/json")
            .body(Bytes::from(body.unwrap_or_default()))
            .map_err(failed)?;
        let exchange = self
            .client
            .exchange(request, ANSWER_LIMIT, answer_bytes_max);
        let answered = self.runtime.block_on(async {
            let mut exchange = std::pin::pin!(exchange);
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
        Ok(answer.into_body())
    }
}

fn failed(error: impl fmt::Display) -> EngineError {
    EngineError::Failed(error.to_string())
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
        if control.cancel.is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        if entries == seen {
            return Ok(());
        }
        seen = entries;
        // Loading is the end of the preparations, however far it is.
        let is_loading = stage == WorkStage::Preparing;
        control.report(stage, if is_loading { 1.0 } else { done })
    }
}

/// The most bytes of an answer with the film of a job: no frame's JPEG is larger than its pixels,
/// and Base64 makes four bytes of three.
fn film_answer_bytes(made: &Generation<'_>) -> usize {
    let frames = film::frames_max(made) as u64;
    let pixels = made.rendered.pixels() * 3 * frames;
    let sound = frames * SOUND_BYTES_PER_SECOND / u64::from(made.fps.max(1));
    let bytes = (pixels + sound) * 4 / 3;
    usize::try_from(bytes)
        .unwrap_or(usize::MAX)
        .saturating_add(ANSWER_BYTES_MAX)
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, EngineError> {
    serde_json::from_slice(body).map_err(|error| {
        EngineError::Failed(format!("the server's answer cannot be read: {error}"))
    })
}

impl ClipPlanner for ServerEngine {
    fn describe(&self) -> &EngineDescription {
        self.model.describe()
    }

    fn plan(&self, spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError> {
        self.model.plan(spec, materials)
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
            return Err(failed("the clip does not match its plan"));
        }
        let is_ti2v = self.model.settings().variant == Some(Variant::Ti2v);
        if made.end.is_some() && is_ti2v && !self.program.ends_ti2v_clips {
            let why = "this version of sd-server ignores the last frame of Wan 2.2 TI2V; install a newer one, or set \
                `last_frame = false` in the model's `features`";
            return Err(EngineError::Unsupported(why.to_owned()));
        }
        let body = request::video_request(&made, model.settings(), control)?;
        control.report(WorkStage::Preparing, 1.0)?;
        let file = self.render(&made, model.settings(), body, control)?;
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
