//! What the listener hands to an endpoint along with its request, as one extension.

use std::sync::Arc;

use crate::buffers::Buffers;
use crate::rates::Meter;

/// A request's part of what the listener shares out.
#[derive(Debug)]
pub(crate) struct Context {
    /// Counts the request to its key.
    pub(crate) meter: Meter,
    /// The memory for connections.
    pub(crate) buffers: Buffers,
}

/// The context, shared by the listener and the endpoint.
pub(crate) type SharedContext = Arc<Context>;
