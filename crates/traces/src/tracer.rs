//! The source of spans: the trace of a task begins with its submit, and continues in any process
//! that knows the submit's span.

use std::borrow::Cow;
use std::num::NonZeroU128;
use std::sync::Arc;

use kinora_contract::{TaskId, TraceContext, UnixMs};

use crate::span::{SpanParent, SpanQueue, TaskSpan};

/// Begins traces, or, without a collector, does nothing. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct TaskTracer(Option<Arc<SpanQueue>>);

impl TaskTracer {
    pub(crate) const fn new(shared: Arc<SpanQueue>) -> Self {
        Self(Some(shared))
    }

    /// Begins the trace of a task, numbered like the task, or continues the caller's: then the
    /// caller has decided whether it is recorded. The span began at `begun_ms`, by wall time.
    pub fn begin(
        &self,
        name: impl Into<Cow<'static, str>>,
        task: TaskId,
        caller: Option<TraceContext>,
        begun_ms: UnixMs,
    ) -> TaskSpan {
        let Some(shared) = &self.0 else {
            return TaskSpan::default();
        };
        let own = NonZeroU128::new(task.number());
        let (trace, parent, is_sampled) = match (caller, own) {
            (Some(caller), _) => (caller.trace, Some(caller.span), caller.sampled),
            (None, Some(own)) => (own, None, shared.samples(own)),
            (None, None) => return TaskSpan::default(),
        };
        if is_sampled {
            let record = shared.record(name.into(), trace, parent, begun_ms);
            TaskSpan::new(shared.clone(), record)
        } else {
            TaskSpan::default()
        }
    }

    /// The place for spans below `context`, which may come from another process.
    pub fn trail(&self, context: Option<TraceContext>) -> SpanParent {
        let context = context.filter(|context| context.sampled);
        SpanParent::new(self.0.clone().zip(context))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use kinora_contract::ManualClock;
    use tokio::sync::mpsc;

    use super::*;
    use crate::span::{AttributeValue, SpanRecord};

    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn tracer(
        ratio: f64,
        room: usize,
    ) -> (TaskTracer, mpsc::Receiver<SpanRecord>, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at(1_000));
        let (queue, ended) = mpsc::channel(room);
        let shared = SpanQueue::new(clock.clone(), 7, ratio, queue);
        (TaskTracer::new(Arc::new(shared)), ended, clock)
    }

    fn task(number: u8) -> TaskId {
        TaskId::from_parts(1_000, [number; 10])
    }

    #[test]
    fn spans_of_two_processes_make_one_tree() {
        let (api, mut of_api, clock) = tracer(1.0, 9);
        let mut submit = api.begin("POST /v1/videos", task(1), None, 1_000);
        submit.set("kinora.model", "m");
        let kept = submit.context().map(|context| context.to_string());
        clock.advance(5);
        drop(submit);
        let root = of_api.try_recv().unwrap();
        assert_eq!(root.trace.get(), task(1).number());
        assert_eq!(
            (root.parent, root.begun_ms, root.ended_ms),
            (None, 1_000, 1_005)
        );
        assert_eq!(
            root.attributes,
            [("kinora.model", AttributeValue::from("m"))]
        );

        let (worker, mut of_worker, _) = tracer(0.0, 9);
        let trail = worker.trail(kept.map(|text| text.parse().unwrap()));
        trail.past("queue", 1_000, 1_200);
        let mut run = trail.span("run");
        drop(run.trail().span("make"));
        run.fail("generation_failed");
        run.fail("later");
        drop(run);
        let spans: Vec<SpanRecord> = std::iter::from_fn(|| of_worker.try_recv().ok()).collect();
        let [queue, make, run] = &spans[..] else {
            panic!("{spans:#?}");
        };
        assert!(spans.iter().all(|one| one.trace == root.trace));
        assert_eq!((queue.parent, run.parent), (Some(root.id), Some(root.id)));
        assert_eq!((queue.ended_ms, make.parent), (1_200, Some(run.id)));
        let error = ("error.type", AttributeValue::from("generation_failed"));
        assert!(run.is_error && run.attributes == [error], "{run:#?}");
    }

    #[test]
    fn the_caller_decides_about_its_own_trace() {
        let (tracer, mut ended, _) = tracer(0.0, 9);
        let caller: TraceContext = CALLER.parse().unwrap();
        drop(tracer.begin("POST /v1/videos", task(1), Some(caller), 1_000));
        let span = ended.try_recv().unwrap();
        assert_eq!((span.trace, span.parent), (caller.trace, Some(caller.span)));
        let unsampled = TraceContext {
            sampled: false,
            ..caller
        };
        let none = tracer.begin("POST /v1/videos", task(1), Some(unsampled), 1_000);
        assert_eq!(none.context(), None);
        drop(tracer.trail(Some(unsampled)).span("run"));
        drop(none);
        assert!(ended.try_recv().is_err());
    }

    #[test]
    fn a_share_of_the_tasks_is_sampled_and_always_the_same() {
        let sampled = |ratio| {
            let (tracer, _, _) = tracer(ratio, 300);
            let is_sampled = |number: &u8| {
                let random = (u64::from(*number))
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    .to_be_bytes();
                let mut bytes = [0; 10];
                bytes[2..].copy_from_slice(&random);
                let span = tracer.begin("x", TaskId::from_parts(1, bytes), None, 1);
                span.context().is_some()
            };
            (1..=200).filter(is_sampled).collect::<Vec<u8>>()
        };
        assert!(sampled(0.0).is_empty());
        assert_eq!(sampled(1.0).len(), 200);
        let half = sampled(0.5);
        assert!((80..120).contains(&half.len()), "{}", half.len());
        assert_eq!(half, sampled(0.5));
    }

    #[test]
    fn spans_without_room_are_dropped_and_counted() {
        let (tracer, mut ended, _) = tracer(1.0, 2);
        for number in 0..5 {
            drop(tracer.begin("x", task(number), None, 1_000));
        }
        tracer.begin("x", task(9), None, 1_000).discard();
        assert_eq!(std::iter::from_fn(|| ended.try_recv().ok()).count(), 2);
        let TaskTracer(Some(shared)) = tracer else {
            unreachable!()
        };
        assert_eq!(shared.lost.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn without_a_collector_nothing_is_kept() {
        let tracer = TaskTracer::default();
        let mut span = tracer.begin("x", task(1), Some(CALLER.parse().unwrap()), 1_000);
        span.set("kinora.model", "m");
        assert_eq!(span.context(), None);
        let trail = tracer.trail(Some(CALLER.parse().unwrap()));
        assert_eq!(trail.span("run").context(), None);
    }
}
