//! The clock of the store, with a gate in front of it. A transaction asks for the time when it begins, and so the
//! writer's thread can be held there: what is sent meanwhile goes into one transaction in the order in which it was
//! sent, however the machine schedules its threads. Equal seeds live alike only so.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use futures_util::{FutureExt, pin_mut};
use kinora_contract::{Clock, ManualClock, SteadyMs, UnixMs};
use tokio::task::unconstrained;

use crate::world::World;

/// Longer than a call lets others go first, so often as a request calls.
const POLLS: usize = 200;
/// The writer is never so slow.
const PATIENCE: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(crate) struct GatedClock {
    clock: Arc<ManualClock>,
    gate: Mutex<Gate>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Gate {
    /// The thread that has closed it, and that alone may pass.
    closed_by: Option<ThreadId>,
    waiting: bool,
}

impl GatedClock {
    pub(crate) fn of(clock: Arc<ManualClock>) -> Self {
        Self {
            clock,
            gate: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) -> Closed<'_> {
        self.lock().closed_by = Some(thread::current().id());
        Closed(self)
    }

    /// Waits until another thread asks for the time.
    fn wait_until_reached(&self) {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), PATIENCE, |gate| !gate.waiting);
        let (gate, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(gate.waiting, "the writer begins no transaction");
    }

    fn pass(&self) {
        let mut gate = self.lock();
        let own = thread::current().id();
        while gate.closed_by.is_some_and(|by| by != own) {
            gate.waiting = true;
            self.changed.notify_all();
            gate = self
                .changed
                .wait(gate)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Clock for GatedClock {
    fn now_ms(&self) -> UnixMs {
        self.pass();
        self.clock.now_ms()
    }

    fn steady_ms(&self) -> SteadyMs {
        self.clock.steady_ms()
    }
}

/// Opens the gate when it goes.
struct Closed<'a>(&'a GatedClock);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        *self.0.lock() = Gate::default();
        self.0.changed.notify_all();
    }
}

impl World {
    /// Does all that is joined in `calls` at once: what they write is written in one transaction.
    pub(crate) async fn at_once<T>(&self, calls: impl Future<Output = T>) -> T {
        let service = self.service();
        let (gate, chores) = (service.gate.clone(), service.real.chores.clone());
        // The runtime would hold back a task that has done much, before its call is sent.
        let calls = unconstrained(calls);
        pin_mut!(calls);
        // Something that changes nothing, for the writer to be busy with.
        let first = unconstrained(chores.settle_chores(Vec::new()));
        pin_mut!(first);
        let closed = gate.close();
        assert!(first.as_mut().now_or_never().is_none());
        gate.wait_until_reached();
        for _ in 0..POLLS {
            if let Some(done) = calls.as_mut().now_or_never() {
                drop(closed);
                first.await.unwrap();
                return done;
            }
        }
        drop(closed);
        let (done, first) = tokio::join!(calls, first);
        first.unwrap();
        done
    }

    /// Begins a call, whose caller goes away before the answer.
    pub(crate) async fn tear<T>(&self, call: impl Future<Output = T>) {
        let service = self.service();
        let closed = service.gate.close();
        // One that is refused at once is not listened to.
        let _ = unconstrained(call).now_or_never();
        drop(closed);
        // Behind this the writer has done whatever it was left with.
        let barrier = service.real.chores.settle_chores(Vec::new());
        barrier.await.unwrap();
    }
}
