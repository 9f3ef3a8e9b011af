//! A writer without a thread, for simulations: the first caller whose turn comes commits all
//! requests queued before. So calls made together are one transaction, whatever the machine does
//! with its threads.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use super::super::job::Job;
use super::state::State;

/// The writer and its waiting jobs.
pub(in super::super) struct Spot(Box<Mutex<Desk>>);

struct Desk {
    state: State,
    queue: VecDeque<Box<dyn Job>>,
}

impl Spot {
    pub(super) fn of(state: State) -> Self {
        let queue = VecDeque::new();
        Self(Box::new(Mutex::new(Desk { state, queue })))
    }

    /// Queues `job`, and returns once it is done. If its caller goes away meanwhile, it is done
    /// with the next one.
    pub(super) async fn serve_with_others(&self, job: Box<dyn Job>) {
        self.desk().queue.push_back(job);
        let mut others_came = false;
        poll_fn(|context| {
            if others_came {
                return Poll::Ready(());
            }
            others_came = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        self.desk().serve();
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    fn serve(&mut self) {
        while !self.queue.is_empty() {
            let mut jobs: Vec<_> = self.queue.drain(..).collect();
            let failures = self.state.commit(&mut jobs);
            let done = jobs.into_iter().zip(failures).collect();
            self.state.answer(done, &mut self.queue);
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.serve();
        self.state.end();
    }
}

impl fmt::Debug for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spot")
    }
}
