//! What a client sees over HTTP, shown on the service inside of this process: the composition of the program, SQLite in a
//! temporary folder, an engine of coloured bars. With `KINORA_E2E_SERVICE=binary` the service is the real binary, and
//! with `KINORA_E2E_STORE=postgres+s3` it is that over PostgreSQL and S3.

#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should stop"
)]

mod bounds;
mod cancels;
mod capabilities;
#[path = "../../../contract/tests/contract/cases.rs"]
mod cases;
mod costs;
#[path = "../e2e/dice.rs"]
mod dice;
mod downloads;
mod drafts;
mod edits;
mod events;
mod fairness;
mod files;
mod idempotency;
mod keys;
mod lifecycle;
mod lists;
mod long_polls;
mod malformed;
mod openapi;
mod previews;
mod priorities;
mod refusals;
mod secrets;
#[expect(dead_code, reason = "the tests of the binary use more of it")]
#[path = "../e2e/support.rs"]
mod support;
mod tenancy;

use std::net::SocketAddr;
use std::path::Path;

use kinora::embedded::EmbeddedService;
use kinora_test_e2e::{Inside, Setup, stores_fail, until};

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A service inside of this process, or what the variables name.
pub(crate) fn setup() -> Setup {
    Setup::default().inside(start)
}

fn start(data: &Path, variables: &[(String, String)]) -> Result<Box<dyn Inside>, String> {
    Ok(Box::new(Service(EmbeddedService::start(data, variables)?)))
}

struct Service(EmbeddedService);

impl Inside for Service {
    fn address(&self) -> SocketAddr {
        self.0.address()
    }

    fn log(&self) -> String {
        self.0.log()
    }

    fn create_key(&self, project: &str) -> String {
        until("a key of a store that did not fail", || {
            let made = self.0.create_key(project);
            assert!(made.is_ok() || stores_fail(), "{made:?}");
            made.ok()
        })
    }
}
