//! The checks of an engine, and what came of each, line by line.

use kinora_engine::conformance::{self, Check, hold};
use kinora_engine::{Engine, Job, Planner};

use super::cases::Case;
use super::watched::Watched;
use crate::failure::Failure;
use crate::output::print;

/// Runs checks until one finds an engine that makes no progress.
pub(super) struct Judge<'a> {
    engine: &'a Watched,
    broken: u32,
    /// Number of checks that were not run.
    left_out: u32,
}

impl<'a> Judge<'a> {
    pub(super) const fn new(engine: &'a Watched) -> Self {
        Self {
            engine,
            broken: 0,
            left_out: 0,
        }
    }

    /// Whether what the engine sends is the clip that it was asked for.
    pub(super) fn outline(&mut self, case: &Case) {
        let engine = self.engine;
        self.run(case, "what it sends", || {
            conformance::outline(engine, &case.spec, &case.materials)
        });
    }

    /// What an engine must do besides making a clip.
    pub(super) fn life(&mut self, case: &Case) {
        let (engine, spec, materials) = (self.engine, &case.spec, &case.materials);
        self.run(case, "the seed", || {
            conformance::repeats(engine, spec, materials)
        });
        self.run(case, "a cancel", || {
            conformance::obeys_cancel(engine, spec, materials)
        });
        self.run(case, "after a cancel", || {
            conformance::leaves_no_trace(engine, spec, materials)
        });
        self.run(case, "after a cancel in a step", || {
            conformance::leaves_no_trace_of_a_step(engine, spec, materials)
        });
        self.run(case, "a sink that fails", || {
            conformance::returns_sink_errors(engine, spec, materials)
        });
        let mut usual = None;
        self.run(case, "unknown messages and keys", || {
            usual = Some(conformance::fingerprint(engine, spec, materials)?);
            engine.engine().send_unknowns(true);
            let among_unknowns = conformance::fingerprint(engine, spec, materials);
            engine.engine().send_unknowns(false);
            hold(
                usual == Some(among_unknowns?),
                "messages of unknown kinds and unknown keys change nothing",
            )
        });
        self.run(case, "a fresh process", || {
            // Before the other starts: two may not fit a device.
            engine.unload();
            hold(
                usual == Some(conformance::fingerprint(engine, spec, materials)?),
                "another process makes the same frames of the same job",
            )
        });
    }

    /// Whether no process is left when the service dies.
    pub(super) fn end_of_input(&mut self, case: &Case) {
        let engine = self.engine;
        self.run(case, "the end of its input", || {
            let clip = engine.plan(&case.spec, &case.materials);
            let ended = clip.and_then(|clip| {
                engine.ends_with_input(&Job {
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
            hold(false, &text)
        });
    }

    /// The result of the command.
    pub(super) fn outcome(self) -> Result<(), Failure> {
        let left_out = match self.left_out {
            0 => String::new(),
            number => format!("; {number} more were not tried"),
        };
        match self.broken {
            0 => {
                print("The engine keeps to the protocol.\n");
                Ok(())
            }
            1 => Err(Failure::new(format!("1 check failed, see above{left_out}"))),
            many => Err(Failure::new(format!(
                "{many} checks failed, see above{left_out}"
            ))),
        }
    }

    /// Runs one check, and prints its outcome.
    fn run(&mut self, case: &Case, what: &str, check: impl FnOnce() -> Check) {
        if self.engine.was_silent() {
            self.left_out += 1;
            return;
        }
        let result = check();
        let (fault, note) = self.engine.remark();
        let result = match fault {
            // It says more than what followed from it.
            Some(fault) => Err(fault),
            None => result.map_err(|broken| format!("this must hold: {broken}")),
        };
        let name = case.name;
        match result {
            Ok(()) => print(&format!("  ok      {name}: {what}\n")),
            Err(broken) => {
                self.broken += 1;
                print(&format!("  BROKEN  {name}: {what}\n          {broken}\n"));
            }
        }
        if let Some(note) = note {
            print(&format!("          note: {note}\n"));
        }
    }
}
