//! A service inside of the process of a test. The tools know no crate of the product: the test binary brings the
//! service along.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

/// A service that runs in this process; it stops when dropped.
pub trait Inside: Send + Sync {
    /// Where it listens.
    fn address(&self) -> SocketAddr;

    /// What it logged so far, a line of JSON for each event.
    fn log(&self) -> String;

    /// Makes a client's key of a new project.
    fn create_key(&self, project: &str) -> String;
}

/// Starts one on a data folder, with settings as the variables of a process; or says why it ended.
pub type StartInside = fn(&Path, &[(String, String)]) -> Result<Box<dyn Inside>, String>;

impl fmt::Debug for dyn Inside {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Inside({})", self.address())
    }
}
