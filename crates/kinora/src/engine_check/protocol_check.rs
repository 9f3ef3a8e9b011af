//! Runs the checks of an engine and prints the verdict of each, line by line. It stops at an engine
//! that makes no progress, and never calls a check passed that tested nothing.

use std::time::Duration;

use kinora_contract::VideoSpec;
use kinora_engine::conformance::{self, CheckError, CheckResult, require};
use kinora_engine::{ClipPlanner, Engine, FrameJob, JobMaterials};

use super::cases::{EngineCase, FRAMES_MIN, StoppedJobs};
use super::watched_engine::{ConductRemark, WatchedEngine};
use crate::failure::{ExitKind, Failure};
use crate::output::{count, print};
use crate::system;

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
pub(super) struct ProtocolCheck<'a> {
    engine: &'a WatchedEngine,
    broken: u32,
    untested: u32,
    /// Number of checks that were not run.
    left_out: u32,
}

impl<'a> ProtocolCheck<'a> {
    pub(super) const fn new(engine: &'a WatchedEngine) -> Self {
        Self {
            engine,
            broken: 0,
            untested: 0,
            left_out: 0,
        }
    }

    /// Checks that the engine sends the requested clip, and that the clip follows its inputs.
    pub(super) fn check_clip(&mut self, case: &EngineCase) {
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
    pub(super) fn check_lifecycle(&mut self, case: &EngineCase, jobs: &mut StoppedJobs<'_>) {
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
            engine.engine().send_unknowns(true);
            let among_unknowns = conformance::fingerprint(engine, spec, materials);
            engine.engine().send_unknowns(false);
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
    pub(super) fn check_end_of_input(&mut self, case: &EngineCase) {
        let engine = self.engine;
        self.run(case, "the end of its input", || {
            let clip = engine.plan(&case.spec, &case.materials);
            let ended = clip.and_then(|clip| {
                engine.ends_with_input(&FrameJob {
                    spec: &case.spec,
                    materials: &case.materials,
                    clip,
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
    pub(super) fn outcome(self) -> Result<(), Failure> {
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
