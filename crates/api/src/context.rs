//! The data that the listener passes to an endpoint with its request, as one request extension.

use std::sync::Arc;

use crate::buffers::Buffers;
use crate::rates::Meter;

/// The listener's shared resources, as one request uses them.
#[derive(Debug)]
pub(crate) struct Context {
    /// Counts the request against its key.
    pub(crate) meter: Meter,
    /// The memory budget for connections.
    pub(crate) buffers: Buffers,
}

/// The context, shared by the listener and the endpoint.
pub(crate) type SharedContext = Arc<Context>;
