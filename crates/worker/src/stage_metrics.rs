//! Metrics and spans of a task's stages, in the process that runs them. Without a recorder and a
//! collector they cost almost nothing.

use std::sync::Arc;

use kinora_contract::{Clock, Stopwatch};
use kinora_store::FetchReport;
use kinora_traces::{SpanParent, TaskSpan};
use metrics::{counter, histogram};

/// A worker's stages of a task, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RunStage {
    /// Fetches the references.
    Fetch,
    /// Decodes them, and plans the clip.
    Prepare,
    /// Runs the engine.
    Make,
    /// Waits for the verdict of the policy service.
    Clear,
    /// Stores the result.
    Publish,
}

impl RunStage {
    const fn name(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Prepare => "prepare",
            Self::Make => "make",
            Self::Clear => "clear",
            Self::Publish => "publish",
        }
    }
}

/// A stage in progress. Dropping it ends its span without an error: the stage was stopped.
pub(crate) struct StageTimer {
    stage: RunStage,
    watch: Stopwatch,
    span: TaskSpan,
}

impl StageTimer {
    /// Begins a stage, with a span below `trail`.
    pub(crate) fn begin(clock: &Arc<dyn Clock>, trail: &SpanParent, stage: RunStage) -> Self {
        Self {
            stage,
            watch: Stopwatch::start(clock),
            span: trail.span(stage.name()),
        }
    }

    /// The parent of spans within the stage.
    pub(crate) fn trail(&self) -> SpanParent {
        self.span.trail()
    }

    /// Ends the stage with its result, and returns that. `code` is the stable code of an error.
    pub(crate) fn end<T, E>(
        mut self,
        result: Result<T, E>,
        code: impl FnOnce(&E) -> String,
    ) -> Result<T, E> {
        // Only successes are timed: a stage that fails at once would make all look fast.
        match &result {
            Ok(_) => {
                let stage = self.stage.name();
                histogram!("kinora_stage_seconds", "stage" => stage).record(self.watch.elapsed());
            }
            Err(error) => self.span.fail(code(error)),
        }
        result
    }
}

/// Counts a fetch; one that failed by the code with which its task fails, of which there are as many as
/// [`kinora_contract::FailureCode`] has.
pub(crate) fn count_fetch(fetched: &FetchReport) {
    match fetched {
        FetchReport::AtHand => counter!("kinora_fetches_total", "outcome" => "at_hand"),
        FetchReport::Failed { failure, .. } => {
            let code = failure.code.clone();
            counter!("kinora_fetches_total", "outcome" => "failed", "code" => code)
        }
        FetchReport::Back { .. } => counter!("kinora_fetches_total", "outcome" => "again"),
    }
    .increment(1);
}
