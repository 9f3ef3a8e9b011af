//! Metrics and spans of a task's stages, in the process that runs them. Without a recorder and a
//! collector they cost almost nothing.

use kinora_contract::Stopwatch;
use kinora_store::FetchReport;
use kinora_traces::SpanParent;
use metrics::{counter, histogram};

use crate::worker::Worker;

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

/// Runs the `work` of a stage in a span below `trail` and passes it the span's own trail. Records
/// the duration if the work completes. `code` is the stable code of an error.
pub(crate) async fn timed<T, E, W>(
    worker: &Worker,
    trail: &SpanParent,
    stage: RunStage,
    code: impl FnOnce(&E) -> String,
    work: impl FnOnce(SpanParent) -> W,
) -> Result<T, E>
where
    W: Future<Output = Result<T, E>>,
{
    let watch = Stopwatch::start(&worker.clock);
    let mut span = trail.span(stage.name());
    let done = work(span.trail()).await;
    // Only successes are timed: a stage that fails at once would make all look fast.
    match &done {
        Ok(_) => {
            histogram!("kinora_stage_seconds", "stage" => stage.name()).record(watch.elapsed());
        }
        Err(error) => span.fail(code(error)),
    }
    done
}

/// Counts a fetch; one that failed by the code with which its task fails, of which there are as many as
/// [`kinora_contract::FailureCode`] has.
pub(crate) fn fetched(fetched: &FetchReport) {
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
