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
mod create_file;
mod delete;
mod edit;
mod error;
mod event_id;
mod event_stream;
mod events;
mod extract;
mod file_content;
mod files;
mod form_stream;
mod form_uploads;
mod health;
mod idempotency;
mod list;
mod listen;
mod memory;
mod middleware;
mod models;
mod named_files;
mod object_cache;
mod openapi;
mod openrouter;
mod operations;
mod policy_gate;
mod prefer;
mod rates;
mod read;
mod refusals;
mod request_id;
mod request_metrics;
mod request_turns;
mod responses;
mod result_files;
mod router;
mod sign_in;
mod sign_in_link;
mod state;
mod store_file;
mod studio;
mod submit;
mod trusted_proxies;
mod uploads;
mod usage;
mod watch;
mod webhooks;

pub use availability::ModelAvailability;
pub use cors::{BadOrigin, CorsPolicy};
pub use health::HealthState;
pub use listen::{
    ListenOptions, ListenSettings, ListenerStop, ServeFuture, ServerTls, TlsError, serve,
    serve_with_options,
};
pub use object_cache::ObjectCache;
pub use operations::Operations;
pub use policy_gate::PolicyGate;
pub use request_id::RequestId;
pub use request_metrics::with_metrics;
pub use request_turns::RequestTurns;
pub use result_files::LostFiles;
pub use router::{document, health_router, router};
pub use sign_in_link::{BrowserKey, SignInLink};
pub use state::{Api, ApiSettings, ProjectBudgets};
pub use trusted_proxies::TrustedProxies;
pub use uploads::Uploads;
pub use watch::TaskWatch;
pub use webhooks::WebhookDeliverer;
