//! The parts of an engine that all its tasks share.

use std::sync::Arc;

use kinora_contract::Clock;
use kinora_engine::places::Places;
use kinora_upstream::{Timer, Upstream};

use crate::options::Options;

/// Made once per engine.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) upstreams: Vec<Upstream>,
    /// In addition to the upstreams' own.
    pub(crate) result_origins: Vec<String>,
    /// The upstreams as places, by the same indices.
    pub(crate) places: Arc<Places>,
    pub(crate) timer: Arc<dyn Timer>,
    /// Measures the pace of bodies and the age of look-ups.
    pub(crate) clock: Arc<dyn Clock>,
    /// Writes results.
    pub(crate) disk: kinora_pool::Pool,
}
