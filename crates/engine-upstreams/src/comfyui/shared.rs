//! What all tasks of one engine share: its card, its servers, and which of them is fit.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::HeaderMap;
use kinora_contract::Clock;
use kinora_engine::KindError;

use super::card::WorkflowCard;
use crate::servers::{AuthScheme, ServerOptions, ServerPool, WaitTimer};

/// A client of all servers of one engine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ComfyServers(pub(crate) Arc<ComfyShared>);

/// Made once per engine.
#[derive(Debug)]
pub(crate) struct ComfyShared {
    pub(crate) card: WorkflowCard,
    pub(crate) pool: ServerPool,
    /// Whether each server is known to have the classes of the workflow.
    fit: Mutex<Vec<bool>>,
}

impl ComfyServers {
    /// A client for the servers in `options`, which run `card`; `headers` are those of every call, and of the
    /// websocket. Makes no calls yet.
    ///
    /// # Errors
    /// If the options are invalid or a key cannot be read.
    pub fn new(
        card: WorkflowCard,
        options: ServerOptions,
        headers: &HeaderMap,
        timer: Arc<dyn WaitTimer>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, KindError> {
        let pool = ServerPool::open(options, &AuthScheme::default(), headers, timer, clock)?;
        Ok(Self(Arc::new(ComfyShared {
            card,
            fit: Mutex::new(vec![false; pool.servers.len()]),
            pool,
        })))
    }
}

impl ComfyShared {
    pub(crate) fn is_fit(&self, index: usize) -> bool {
        self.fit.lock().unwrap_or_else(PoisonError::into_inner)[index]
    }

    /// Records whether a server has the classes of the workflow.
    pub(crate) fn set_fit(&self, index: usize, is_fit: bool) {
        self.fit.lock().unwrap_or_else(PoisonError::into_inner)[index] = is_fit;
    }
}
