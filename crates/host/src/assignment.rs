//! A job as its process gets it: the head, then the materials.

use kinora_engine::{Clip, Job};

use crate::materials;
use crate::message::Order;
use crate::process::EngineProcess;

#[derive(Clone, Copy)]
pub(crate) struct Assignment<'a> {
    pub(crate) job: &'a Job<'a>,
    /// The clip as the engine renders it.
    pub(crate) clip: Clip,
    /// Whether the engine is one of this executable.
    pub(crate) is_own: bool,
    /// Whether the engine decides how many frames the clip has.
    pub(crate) is_undecided: bool,
    /// Whether messages and keys of a later version come with it, which the engine must skip.
    pub(crate) has_unknowns: bool,
}

impl Assignment<'_> {
    /// Queues the job, and limits what the process may send for it. Returns the number of orders that
    /// the process has been given so far.
    pub(crate) fn order_from(&self, process: &EngineProcess) -> usize {
        let mut head = materials::head(self.job, self.clip, self.is_own);
        if self.is_undecided {
            head.clip = head.clip.undecided();
        }
        head.unknown = self.has_unknowns.then_some(true);
        process.bounds().set_clip(head.clip);
        let order_unknown = || {
            if self.has_unknowns {
                process.order(Order::Unknown);
            }
        };
        order_unknown();
        process.order(Order::Job(Box::new(head)));
        order_unknown();
        for bytes in materials::bytes(self.job.materials) {
            process.order(Order::Material(bytes));
        }
        order_unknown();
        process.queued()
    }
}
