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
mod policy_gate;
mod health;
mod list;
mod listen;
mod memory;
mod request_metrics;
mod middleware;
mod models;
mod openapi;
mod operations;
mod prefer;
mod trusted_proxies;
mod rates;
mod read;
mod refusals;
mod object_cache;
mod request_id;
mod responses;
mod router;
mod state;
mod studio;
mod submit;
mod request_turns;
mod watch;
mod webhooks;

pub use availability::ModelAvailability;
pub use cors::{BadOrigin, CorsPolicy};
pub use files::LostFiles;
pub use policy_gate::PolicyGate;
pub use health::HealthState;
pub use listen::{ListenOptions, ListenSettings, ServeFuture, ListenerStop, ServerTls, TlsError, serve, serve_with_options};
pub use request_metrics::with_metrics;
pub use operations::Operations;
pub use trusted_proxies::TrustedProxies;
pub use object_cache::ObjectCache;
pub use request_id::RequestId;
pub use router::{document, health_router, router};
pub use state::{Api, ApiSettings};
pub use request_turns::RequestTurns;
pub use watch::TaskWatch;
pub use webhooks::WebhookDeliverer;
