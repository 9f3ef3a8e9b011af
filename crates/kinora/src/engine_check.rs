//! `kinora engine check`: runs the conformance suite against any command that speaks the engine protocol, and says what
//! it breaks in words that its author can act on. It stops at an engine that makes no progress, and never calls a check
//! passed that tested nothing.

mod cases;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use kinora_contract::{ModelPreset, VideoSpec, Warning};
use kinora_engine::conformance::{self, CheckError, CheckResult, require};
use kinora_engine::{
    ClipPlan, ClipPlanner, ClipSink, Engine, EngineCapabilities, EngineDescription, EngineError,
    EngineProgram, Features, FrameJob, JobControl, JobMaterials, RenderGrid,
};
use kinora_engine_host::{
    EngineIntroduction, HostOptions, HostedEngine, OpenRequest, ProcessMisconduct, PromisedPlanner,
};

use crate::cli::EngineCheckArgs;
use crate::engine_host::{clock, program_command};
use crate::failure::{ExitKind, Failure};
use crate::output::{count, print};
use crate::system;
use cases::{ClipShape, EngineCase, FRAMES_MIN, StoppedJobs};

/// Frames per second for an engine that takes any.
const FPS: u32 = 8;

/// Checks a command.
pub(crate) fn run(args: &EngineCheckArgs) -> Result<(), Failure> {
    let settings = settings(args)?;
    let preset = preset(args)?;
    let introduction = introduction(args, &settings)?;
    print(&introduction_text(&introduction));
    let promises = promises(&introduction);
    if preset.is_some() && !promises.presets {
        return Err(Failure::new(
            "The engine takes no presets: its hello has no `presets`. See docs/engine-protocol.md, or leave out --preset.",
        ));
    }
    let shape = ClipShape {
        size: args.size,
        seconds: args.seconds,
    };
    let cases = cases::cases_for(promises, shape);
    let Some(plainest) = cases.first() else {
        return Err(Failure::new(
            "The engine's hello has no feature: it takes no request. See `features` in docs/engine-protocol.md.",
        ));
    };
    let engine = start_engine(args, &settings, Some(promises));
    let silence_max = Duration::from_secs(args.silence_seconds.into());
    let engine = WatchedEngine {
        engine,
        yield_limit: introduction.yield_limit,
        silence_max,
        was_silent: AtomicBool::new(false),
    };
    let mut judge = ProtocolCheck {
        engine: &engine,
        broken: 0,
        untested: 0,
        left_out: 0,
    };
    for (index, case) in cases.iter().enumerate() {
        judge.check_clip(case);
        // The first has everything that a job can have tried on it.
        if index == 0 {
            judge.check_lifecycle(case, &mut StoppedJobs::new(case, promises, shape));
            if let Some(preset) = &preset {
                judge.run(case, "a preset", || {
                    conformance::obeys_preset(&engine, &case.spec, &case.materials, preset)
                });
            }
        }
    }
    // Last, since it costs a process.
    judge.check_end_of_input(plainest);
    judge.outcome()
}

fn settings(args: &EngineCheckArgs) -> Result<serde_json::Value, Failure> {
    let Some(path) = &args.settings else {
        return Ok(serde_json::json!({}));
    };
    let shown = path.display();
    let text = fs::read(path).map_err(|error| Failure::because(&shown, error))?;
    serde_json::from_slice(&text).map_err(|error| Failure::because(&shown, error))
}

/// The preset of `--preset`: an object as JSON, or a file with one.
fn preset(args: &EngineCheckArgs) -> Result<Option<ModelPreset>, Failure> {
    let Some(given) = &args.preset else {
        return Ok(None);
    };
    let text = if given.trim_start().starts_with('{') {
        given.clone()
    } else {
        fs::read_to_string(given).map_err(|error| Failure::because(given, error))?
    };
    let parsed = serde_json::from_str(&text);
    parsed
        .map(Some)
        .map_err(|error| Failure::because("The preset is no JSON object", error))
}

fn introduction(
    args: &EngineCheckArgs,
    settings: &serde_json::Value,
) -> Result<EngineIntroduction, Failure> {
    let engine = start_engine(args, settings, None);
    engine
        .introduction()
        .map_err(|error| Failure::because("The engine does not open", error))
}

/// `text`, or `other` if it is empty.
const fn non_empty<'t>(text: &'t str, other: &'t str) -> &'t str {
    if text.is_empty() { other } else { text }
}

fn introduction_text(introduction: &EngineIntroduction) -> String {
    let grid = introduction.promises.grid;
    format!(
        "{} {} ({})\n  sizes are multiples of {}, clips have {} n + {} frames, {} frames per second\n",
        non_empty(&introduction.name, "An engine without a name"),
        introduction.version,
        non_empty(&introduction.sdk, "no SDK"),
        grid.size_multiple,
        grid.frame_step,
        grid.frame_offset,
        match introduction.promises.fps {
            0 => "any number of".to_owned(),
            fps => fps.to_string(),
        },
    )
}

/// The engine's promises, with a low frame rate if it takes any.
fn promises(introduction: &EngineIntroduction) -> EngineCapabilities {
    let promises = introduction.promises;
    EngineCapabilities {
        fps: if promises.fps == 0 { FPS } else { promises.fps },
        ..promises
    }
}

/// The engine. Without promises, of which nothing is known yet, it takes no jobs.
fn start_engine(
    args: &EngineCheckArgs,
    settings: &serde_json::Value,
    promises: Option<EngineCapabilities>,
) -> HostedEngine {
    let known = promises.unwrap_or(EngineCapabilities {
        features: Features::default(),
        grid: RenderGrid::ANY,
        fps: FPS,
        presets: false,
    });
    let program = EngineProgram {
        command: args.command.clone(),
        environment: Default::default(),
        folder: None,
        devices: args.device.iter().cloned().collect(),
        settings: settings.clone(),
        promises: known,
        confined: None,
    };
    let planner: Arc<dyn ClipPlanner> = Arc::new(PromisedPlanner::new("checked", "1", true, known));
    let options = HostOptions {
        open: OpenRequest::new("checked", program.settings.clone()),
        promises,
        devices: program.devices.clone(),
        command: Box::new(move || program_command(&program, None)),
        processes: 1,
        open_limit: Duration::from_secs(args.open_seconds.into()),
        // Each check has a limit of its own.
        run_limit: Duration::MAX,
        memory_bytes_max: None,
        confinement: None,
        clock: clock(),
    };
    HostedEngine::new(planner, options)
}

/// How long a check looks for a job that lasts long enough to be stopped.
const ENLARGE_LIMIT: Duration = Duration::from_secs(60);

/// The verdict of a check.
enum CheckVerdict {
    Passed,
    Untested(String),
    Broken(String),
}

impl CheckVerdict {
    fn new(checked: CheckResult, remark: &ConductRemark) -> Self {
        match (checked, remark) {
            // A fault says more than what followed from it.
            (_, ConductRemark::Fault(fault)) => Self::Broken(fault.clone()),
            (Err(CheckError::Broken(promise)), _) => {
                Self::Broken(format!("this must hold: {promise}"))
            }
            (Err(CheckError::Untested(why)), _) => Self::Untested(why),
            (Ok(()), ConductRemark::DoneBeforeCancel) => Self::Untested(
                "each job was done before the cancel took effect, also larger ones; a larger clip may test more: --seconds, --size"
                    .to_owned(),
            ),
            (Ok(()), ConductRemark::Nothing) => Self::Passed,
        }
    }
}

/// Runs checks until one finds an engine that makes no progress.
struct ProtocolCheck<'a> {
    engine: &'a WatchedEngine,
    broken: u32,
    untested: u32,
    /// Number of checks that were not run.
    left_out: u32,
}

impl ProtocolCheck<'_> {
    /// Checks that the engine sends the requested clip, and that the clip follows its inputs.
    fn check_clip(&mut self, case: &EngineCase) {
        let engine = self.engine;
        let mut made = None;
        self.run(case, "what it sends", || {
            made = Some(conformance::outline(engine, &case.spec, &case.materials)?);
            Ok(())
        });
        let Some(first) = made else {
            // Without a clip there is nothing to compare others with.
            return;
        };
        for (input, other) in &case.others {
            self.run(case, &format!("another {input}"), || {
                conformance::follows(engine, &case.spec, input, first, other)
            });
        }
    }

    /// Checks seeds, cancels, failing sinks, unknown messages and a fresh process.
    fn check_lifecycle(&mut self, case: &EngineCase, jobs: &mut StoppedJobs<'_>) {
        let (engine, spec, materials) = (self.engine, &case.spec, &case.materials);
        self.run(case, "the seed", || {
            conformance::repeats(engine, spec, materials)
        });
        self.run_stopping(jobs, "a cancel", conformance::obeys_cancel);
        self.run_stopping(jobs, "after a cancel", conformance::leaves_no_trace);
        self.run_stopping(
            jobs,
            "after a cancel in a step",
            conformance::leaves_no_trace_of_a_step,
        );
        self.run_stopping(jobs, "a sink that fails", conformance::returns_sink_errors);
        let mut usual = None;
        self.run(case, "unknown messages and keys", || {
            usual = Some(conformance::fingerprint(engine, spec, materials)?);
            engine.engine.send_unknowns(true);
            let among_unknowns = conformance::fingerprint(engine, spec, materials);
            engine.engine.send_unknowns(false);
            require(
                usual == Some(among_unknowns?),
                "messages of unknown kinds and unknown keys change nothing",
            )
        });
        self.run(case, "a fresh process", || {
            // Before the other starts: two may not fit a device.
            engine.unload();
            require(
                usual == Some(conformance::fingerprint(engine, spec, materials)?),
                "another process makes the same frames of the same job",
            )
        });
    }

    /// Whether no process is left when the service dies.
    fn check_end_of_input(&mut self, case: &EngineCase) {
        let engine = self.engine;
        self.run(case, "the end of its input", || {
            let clip = engine.plan(&case.spec, &case.materials);
            let ended = clip.and_then(|clip| {
                engine.ends_with_input(&FrameJob {
                    spec: &case.spec,
                    materials: &case.materials,
                    clip,
                    preset: None,
                })
            });
            let text = match ended {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    "the process, and all that it started, ends at once when its standard input ends, also in the middle \
                     of a job: otherwise it outlives a Kinora that was killed"
                        .to_owned()
                }
                Err(error) => format!("the job begins: {error}"),
            };
            require(false, &text)
        });
    }

    /// The result of the command.
    fn outcome(self) -> Result<(), Failure> {
        let left_out = match self.left_out {
            0 => String::new(),
            number => format!("; {number} more were not tried"),
        };
        if self.broken > 0 {
            let failed = count(self.broken, "check");
            return Err(Failure::new(format!(
                "{failed} failed, see above{left_out}"
            )));
        }
        if self.untested > 0 {
            let untested = count(self.untested, "check");
            let text = format!("Nothing is broken, but {untested} tested nothing, see above.");
            return Err(Failure::new(text).exit(ExitKind::Untested));
        }
        print("The engine keeps to the protocol.\n");
        Ok(())
    }

    /// Runs one check, and prints its verdict.
    fn run(&mut self, case: &EngineCase, what: &str, check: impl FnOnce() -> CheckResult) {
        if self.skip_if_silent() {
            return;
        }
        let checked = check();
        let verdict = CheckVerdict::new(checked, &self.engine.evaluate_conduct());
        self.report(case, what, verdict);
    }

    /// Runs a check that stops jobs, with larger ones while they are done before they can be stopped.
    fn run_stopping(
        &mut self,
        jobs: &mut StoppedJobs<'_>,
        what: &str,
        check: fn(&dyn Engine, &VideoSpec, &JobMaterials) -> CheckResult,
    ) {
        if self.skip_if_silent() {
            return;
        }
        let engine = self.engine;
        let begun = system::stopwatch();
        // A cancel proves something only about a job that is still running when it arrives. A quick
        // engine finishes a small clip before that, so the job grows, first in length and then in
        // size, until a cancel finds it at work, nothing larger is possible, or a minute is over.
        let verdict = loop {
            let EngineCase {
                spec, materials, ..
            } = jobs.current();
            let clip = engine.plan(spec, materials);
            let is_short = clip.is_ok_and(|clip| clip.frames < FRAMES_MIN);
            let (checked, remark) = if is_short {
                (Ok(()), ConductRemark::DoneBeforeCancel)
            } else {
                (check(engine, spec, materials), engine.evaluate_conduct())
            };
            let is_done = remark != ConductRemark::DoneBeforeCancel
                || matches!(checked, Err(CheckError::Untested(_)))
                || begun.elapsed() > ENLARGE_LIMIT;
            let is_larger = !is_done
                && jobs.enlarge(|case| {
                    conformance::fingerprint(engine, &case.spec, &case.materials).is_ok()
                });
            if !is_larger {
                break CheckVerdict::new(checked, &remark);
            }
        };
        self.report(jobs.current(), what, verdict);
        if let Some(shape) = jobs.larger_shape() {
            print(&format!("            note: with a clip of {shape}\n"));
        }
    }

    /// Whether an earlier check found an engine without progress; then this one is left out.
    fn skip_if_silent(&mut self) -> bool {
        let is_over = self.engine.was_silent();
        self.left_out += u32::from(is_over);
        is_over
    }

    fn report(&mut self, case: &EngineCase, what: &str, verdict: CheckVerdict) {
        let name = case.name;
        match verdict {
            CheckVerdict::Passed => print(&format!("  ok        {name}: {what}\n")),
            CheckVerdict::Untested(why) => {
                self.untested += 1;
                print(&format!("  untested  {name}: {what}\n            {why}\n"));
            }
            CheckVerdict::Broken(why) => {
                self.broken += 1;
                print(&format!("  BROKEN    {name}: {what}\n            {why}\n"));
            }
        }
    }
}

/// Time between looks at the progress.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum lifetime of a process after the end of its input. It must end at once, but the system
/// takes a moment to release the memory of a device.
const END_OF_INPUT_LIMIT: Duration = Duration::from_secs(10);

/// A remark on the conduct of a process that the results of its jobs do not show.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ConductRemark {
    Nothing,
    /// A stopped job was over before the process could obey.
    DoneBeforeCancel,
    /// A fault, in words for the engine's author.
    Fault(String),
}

/// The engine under a check: a job without progress is ended as by the service, and what the results of jobs do not say
/// about the process is put into words for its author.
struct WatchedEngine {
    engine: HostedEngine,
    yield_limit: Duration,
    silence_max: Duration,
    was_silent: AtomicBool,
}

impl WatchedEngine {
    /// Whether a job made no progress for too long. Later ones would take as long to fail.
    fn was_silent(&self) -> bool {
        self.was_silent.load(Ordering::Acquire)
    }

    /// Whether a process ends with its input in the middle of this job.
    fn ends_with_input(&self, job: &FrameJob<'_>) -> Result<bool, EngineError> {
        let control = JobControl::default();
        self.watch(&control, || {
            let engine = &self.engine;
            engine.ends_with_input(job, &control, END_OF_INPUT_LIMIT)
        })
    }

    /// The remark on the process's conduct since the last call.
    fn evaluate_conduct(&self) -> ConductRemark {
        let conduct = self.engine.take_misconduct();
        let seconds = self.yield_limit.as_secs_f64();
        // Silence first: the job was cancelled because of it, and what followed would read like a
        // fault of its own.
        if self.was_silent() {
            let silence = self.silence_max.as_secs();
            let text = format!(
                "no progress for {silence} s: the job was ended. Send `p` or `f` while the work advances, declare a phase \
                 (`g`) for long silent work, or raise --silence-seconds, and host.silence_seconds of the service"
            );
            return ConductRemark::Fault(text);
        }
        let fault = match conduct {
            Some(ProcessMisconduct::IgnoredCancel) => format!(
                "no end of the job within {seconds} s of a cancel: the process was killed. Read messages while a job runs, and \
                 send `e` after a `c`; `yield_seconds` of the hello allows up to 30 s"
            ),
            Some(ProcessMisconduct::ExitedAfterCancel) => {
                "the process exited after a cancel without an end of the job (`e`)".to_owned()
            }
            Some(ProcessMisconduct::LeftOrdersUnread) => format!(
                "messages of the job still unread {seconds} s after its end: the process was killed. Read a job and its \
                 materials to the end, even if you refuse it"
            ),
            Some(ProcessMisconduct::DoneAfterCancel) => return ConductRemark::DoneBeforeCancel,
            None => return ConductRemark::Nothing,
        };
        ConductRemark::Fault(fault)
    }

    /// Cancels the work once it makes no progress for too long.
    fn watch<T>(&self, control: &JobControl, work: impl FnOnce() -> T) -> T {
        thread::scope(|scope| {
            // The sender is dropped with this scope, even on a panic.
            let (_at_work, left) = mpsc::channel::<()>();
            scope.spawn(move || self.watch_progress(control, &left));
            work()
        })
    }

    fn watch_progress(&self, control: &JobControl, left: &Receiver<()>) {
        // As the service does: any report counts as progress, so that an engine which loads for
        // minutes and says so is not ended.
        let mut still = system::stopwatch();
        let mut seen = control.progress.reports();
        while left.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let reports = control.progress.reports();
            if reports != seen {
                seen = reports;
                still.restart();
            } else if still.elapsed() >= self.silence_max {
                self.was_silent.store(true, Ordering::Release);
                control.cancel.cancel();
                return;
            }
        }
    }
}

impl ClipPlanner for WatchedEngine {
    fn describe(&self) -> &EngineDescription {
        self.engine.describe()
    }

    fn plan(&self, spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError> {
        self.engine.plan(spec, materials)
    }

    fn decides_length(&self, spec: &VideoSpec) -> bool {
        self.engine.decides_length(spec)
    }

    fn warnings(&self, spec: &VideoSpec, materials: &JobMaterials) -> Vec<Warning> {
        self.engine.warnings(spec, materials)
    }
}

impl Engine for WatchedEngine {
    fn generate(
        &self,
        job: &FrameJob<'_>,
        sink: &mut dyn ClipSink,
        control: &JobControl,
    ) -> Result<(), EngineError> {
        self.watch(control, || self.engine.generate(job, sink, control))
    }

    fn unload(&self) {
        self.engine.unload();
    }
}
