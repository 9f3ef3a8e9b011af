//! The HTTP API. [`router()`] lists every route; each endpoint is one file; [`listen`](mod@listen)
//! serves them. Endpoints translate requests into calls of `kinora-contract` and `kinora-store` and
//! the results into answers. This crate generates no video and knows no worker.

#![forbid(unsafe_code)]

mod auth;
mod availability;
mod body;
mod buffers;
mod cancel;
mod conditional;
mod content;
mod context;
mod cors;
mod delete;
mod document;
mod edit;
mod error;
mod files;
mod frame;
mod header_value;
mod health;
mod host;
mod idempotency;
mod journal;
mod list;
mod listen;
mod lost;
mod models;
mod multipart;
mod openapi;
mod path_id;
mod preview;
mod proxies;
mod range;
mod rates;
mod read;
mod redirect;
mod refusals;
mod rendered;
mod request_id;
mod router;
mod security;
mod state;
mod submit;
mod turns;
mod unsupported;
mod wire;

pub use availability::Availability;
pub use cors::{BadOrigin, Cors};
pub use health::Health;
pub use listen::{Guards, ListenSettings, Stop, Tls, TlsError, serve, serve_guarded};
pub use lost::LostFiles;
pub use proxies::TrustedProxies;
pub use rendered::Rendered;
pub use request_id::RequestId;
pub use router::{document, health_router, router};
pub use state::{Api, Settings};
pub use turns::Turns;
