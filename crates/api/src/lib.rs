//! The HTTP API. [`router()`] lists every route; each endpoint is one file; [`listen`](mod@listen)
//! serves them. Endpoints translate requests into calls of `kinora-contract` and `kinora-store` and
//! the results into answers. This crate generates no video and knows no worker.

#![forbid(unsafe_code)]

mod availability;
mod body;
mod cancel;
mod conditional;
mod content;
mod cors;
mod delete;
mod edit;
mod error;
mod event_id;
mod event_stream;
mod events;
mod extract;
mod files;
mod gate;
mod health;
mod list;
mod listen;
mod memory;
mod metered;
mod middleware;
mod models;
mod openapi;
mod operations;
mod prefer;
mod proxies;
mod rates;
mod read;
mod refusals;
mod rendered;
mod request_id;
mod responses;
mod router;
mod state;
mod studio;
mod submit;
mod turns;
mod watch;
mod webhooks;

pub use availability::Availability;
pub use cors::{BadOrigin, Cors};
pub use files::LostFiles;
pub use gate::Gate;
pub use health::Health;
pub use listen::{Guards, ListenSettings, Serving, Stop, Tls, TlsError, serve, serve_guarded};
pub use metered::metered;
pub use operations::Operations;
pub use proxies::TrustedProxies;
pub use rendered::Rendered;
pub use request_id::RequestId;
pub use router::{document, health_router, router};
pub use state::{Api, Settings};
pub use turns::Turns;
pub use watch::Watch;
pub use webhooks::Deliverer;
