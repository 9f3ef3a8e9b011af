//! A database that several processes share: whether it is usable, and who serves it. PostgreSQL's
//! own tools check its integrity.

use std::sync::Arc;

use tokio::runtime::Runtime;

use super::finding::Finding;
use crate::config::Config;
use crate::count::count;
use crate::damage;
use crate::system::SystemClock;

/// Connects as the service would, and asks for the workers. Changes nothing.
pub(super) fn examine(config: &Config) -> Vec<(&'static str, Finding)> {
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return vec![("database", Finding::Bad(error.to_string()))],
    };
    let url = config.store_url();
    let living = match runtime.block_on(kinora_store::living_workers(&url, Arc::new(SystemClock))) {
        Ok(living) => living,
        Err(error) => {
            let refused = damage::refused(error).to_string();
            return vec![("database", Finding::Bad(refused))];
        }
    };
    match runtime.block_on(kinora_store::unsafe_settings(&url)) {
        Ok(settings) if settings.is_empty() => {}
        Ok(settings) => {
            let settings = settings.join(" and ");
            let lost = format!(
                "the server has {settings}: a power loss may take acknowledged tasks. Set it to on in postgresql.conf"
            );
            return vec![("database", Finding::Bad(lost))];
        }
        Err(error) => {
            let refused = damage::refused(error).to_string();
            return vec![("database", Finding::Bad(refused))];
        }
    }
    let usable = "usable, with the schema of this version; PostgreSQL checks its own files";
    let workers = match living.len() as u64 {
        0 => Finding::Note(
            "none: accepted tasks wait. Start one with `kinora serve` or `kinora worker`"
                .to_owned(),
        ),
        number => Finding::Good(format!("{}; see `kinora workers`", count(number, "worker"))),
    };
    vec![
        ("database", Finding::Good(usable.to_owned())),
        ("workers", workers),
    ]
}
