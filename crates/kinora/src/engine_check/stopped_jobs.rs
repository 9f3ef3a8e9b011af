//! Jobs to be stopped. A cancel shows nothing about an engine that is done before the cancel reaches it, so the jobs grow
//! until one lasts long enough.

use kinora_engine::Promises;

use super::cases::{self, Case, ClipShape};

/// Checks refuse or cancel the frames before this one.
pub(super) const FRAMES_MIN: u32 = 4;

/// The job that checks stop, and larger ones of its kind.
pub(super) struct StoppedJobs<'c> {
    plainest: &'c Case,
    promises: Promises,
    shape: ClipShape,
    /// The larger job in place of the plainest.
    larger: Option<Case>,
    is_largest: bool,
}

impl<'c> StoppedJobs<'c> {
    /// `plainest` is the first case of this shape.
    pub(super) const fn new(plainest: &'c Case, promises: Promises, shape: ClipShape) -> Self {
        Self {
            plainest,
            promises,
            shape,
            larger: None,
            is_largest: false,
        }
    }

    /// The job to stop.
    pub(super) fn current(&self) -> &Case {
        self.larger.as_ref().unwrap_or(self.plainest)
    }

    /// The shape of a job that is larger than the plainest.
    pub(super) fn larger_shape(&self) -> Option<ClipShape> {
        self.larger.as_ref().map(|_| self.shape)
    }

    /// Goes on to a larger job, if the engine `makes` it. `false`: there is none, and the plainest is as good as any.
    pub(super) fn enlarge(&mut self, makes: impl FnOnce(&Case) -> bool) -> bool {
        let shape = self.shape.larger().filter(|_| !self.is_largest);
        let larger = shape.and_then(|shape| {
            let case = cases::of(self.promises, shape).into_iter().next()?;
            makes(&case).then_some((shape, case))
        });
        match larger {
            Some((shape, case)) => {
                self.shape = shape;
                self.larger = Some(case);
                true
            }
            None => {
                self.larger = None;
                self.is_largest = true;
                false
            }
        }
    }
}
