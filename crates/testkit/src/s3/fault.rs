//! What goes wrong, and with which requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hyper::Method;
use tokio::sync::watch;

/// A kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Connections are reset, also those that are open, and nothing is done.
    Away,
    /// Requests get no answer until the fault is changed; then they are done.
    Hold,
    /// Requests are done after this time.
    Slow(Duration),
    /// Requests are refused with this status, and nothing is done.
    Status(u16),
    /// Requests are done, and the connection breaks instead of an answer.
    LoseAnswer,
    /// The last byte of the request's body is changed on its way.
    CorruptRequest,
    /// The last byte of the answer's body is changed on its way.
    CorruptAnswer,
}

/// The current fault.
#[derive(Debug)]
pub(crate) struct Faults {
    now: Mutex<Rule>,
    /// Requests and connections that met a fault.
    met: AtomicU64,
    /// The number of the rule: held requests wait for the next.
    changes: watch::Sender<u64>,
}

/// A fault, for which requests, and how many of them.
#[derive(Clone, Debug, Default)]
struct Rule {
    fault: Option<Fault>,
    methods: Vec<Method>,
    left: Option<u32>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            now: Mutex::default(),
            met: AtomicU64::new(0),
            changes: watch::Sender::new(0),
        }
    }
}

impl Faults {
    pub(crate) fn set(&self, fault: Option<Fault>, methods: &[Method], left: Option<u32>) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = Rule {
            fault,
            methods: methods.to_vec(),
            left,
        };
        self.changes.send_modify(|number| *number += 1);
    }

    /// How many requests and connections have met a fault so far.
    pub(crate) fn met(&self) -> u64 {
        self.met.load(Ordering::Relaxed)
    }

    /// Whether a new connection is refused.
    pub(crate) fn refuses(&self) -> bool {
        let refuses = self.is_away();
        self.met.fetch_add(u64::from(refuses), Ordering::Relaxed);
        refuses
    }

    /// Whether connections are refused.
    pub(crate) fn is_away(&self) -> bool {
        let rule = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        rule.fault == Some(Fault::Away)
    }

    /// The fault that a request meets.
    pub(crate) fn meet(&self, method: &Method) -> Option<Fault> {
        let mut rule = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let is_meant = rule.methods.is_empty() || rule.methods.contains(method);
        if !is_meant || rule.left == Some(0) {
            return None;
        }
        rule.left = rule.left.map(|left| left - 1);
        self.met
            .fetch_add(u64::from(rule.fault.is_some()), Ordering::Relaxed);
        rule.fault
    }

    /// Tells of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
