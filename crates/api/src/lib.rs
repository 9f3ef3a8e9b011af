//! HTTP. [`router()`] lists every route; each endpoint is one file; [`listen`](mod@listen) serves
//! them. It turns requests into calls of `kinora-contract` and `kinora-store`, and what comes
//! back into answers. It never generates anything and never sees a worker.

mod auth;
mod body;
mod cancel;
mod content;
mod delete;
mod edit;
mod error;
mod files;
mod frame;
mod health;
mod idempotency;
mod list;
mod listen;
mod models;
mod openapi;
mod range;
mod read;
mod router;
mod state;
mod submit;
mod unsupported;
mod wire;

pub use listen::{ListenSettings, serve};
pub use openapi::document;
pub use router::router;
pub use state::{Api, Settings};
