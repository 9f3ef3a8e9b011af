//! An engine that takes memory of a device, and a look at that memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use kinora_contract::{ManualClock, VideoSpec, Warning};
use kinora_engine::{
    ClipPlan, ClipPlanner, ClipSink, Engine, EngineDescription, EngineError, FrameJob, JobControl,
    JobMaterials,
};

use crate::bench::DEADLINE;
use crate::engines::Puppet;

/// The memory of a device, as it really is.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) loaded: Mutex<BTreeMap<&'static str, u64>>,
    pub(crate) most: AtomicUsize,
    pub(crate) loads: AtomicUsize,
    /// How much time a clip takes by the tests' clock.
    pub(crate) clip_ms: AtomicU64,
    /// Whether engines cannot leave.
    pub(crate) stuck: (Mutex<bool>, Condvar),
}

impl Memory {
    fn load(&self, name: &'static str, megabytes: u64) {
        let mut loaded = self.loaded.lock().unwrap();
        if loaded.insert(name, megabytes).is_none() {
            self.loads.fetch_add(1, Ordering::SeqCst);
        }
        let sum = usize::try_from(loaded.values().sum::<u64>()).unwrap();
        self.most.fetch_max(sum, Ordering::SeqCst);
    }

    fn unload(&self, name: &str) {
        let stuck = self.stuck.0.lock().unwrap();
        let waited = self.stuck.1.wait_timeout_while(stuck, DEADLINE, |is| *is);
        drop(waited.unwrap());
        self.loaded.lock().unwrap().remove(name);
    }

    pub(crate) fn set_stuck(&self, is_stuck: bool) {
        *self.stuck.0.lock().unwrap() = is_stuck;
        self.stuck.1.notify_all();
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.loaded.lock().unwrap().contains_key(name)
    }
}

/// A puppet that takes memory from its first clip until it is unloaded.
pub(crate) struct Lodger {
    pub(crate) name: &'static str,
    pub(crate) megabytes: u64,
    pub(crate) puppet: Arc<Puppet>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) clock: Arc<ManualClock>,
}

impl ClipPlanner for Lodger {
    fn describe(&self) -> &EngineDescription {
        self.puppet.describe()
    }

    fn plan(&self, spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError> {
        self.puppet.plan(spec, materials)
    }

    fn warnings(&self, spec: &VideoSpec, materials: &JobMaterials) -> Vec<Warning> {
        self.puppet.warnings(spec, materials)
    }
}

impl Engine for Lodger {
    fn generate(
        &self,
        job: &FrameJob<'_>,
        sink: &mut dyn ClipSink,
        control: &JobControl,
    ) -> Result<(), EngineError> {
        self.memory.load(self.name, self.megabytes);
        self.clock
            .advance(self.memory.clip_ms.load(Ordering::SeqCst));
        self.puppet.generate(job, sink, control)
    }

    fn unload(&self) {
        assert_eq!(self.puppet.at_work(), 0, "{} is in use", self.name);
        self.memory.unload(self.name);
    }
}
