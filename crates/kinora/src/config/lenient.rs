//! The configuration of a process that serves the API alone: it opens no engine, so that engines whose kind or
//! settings it does not know must not stop it. Their models are served as their cards say.

use toml::{Table, Value};

use super::Engine;
use crate::failure::Failure;

/// Takes the engines out of `settings` that this program cannot read, where it is to run none. Returns why.
pub(super) fn set_aside_engines(settings: &mut Table) -> Vec<String> {
    let runs = |worker: &Value| worker.get("enabled").and_then(Value::as_bool);
    if settings.get("worker").and_then(runs) != Some(false) {
        return Vec::new();
    }
    let Some(Value::Array(engines)) = settings.get_mut("engines") else {
        return Vec::new();
    };
    let mut reasons = Vec::new();
    engines.retain(|engine| match read(engine) {
        Ok(()) => true,
        Err(failure) => {
            reasons.push(failure.to_string());
            false
        }
    });
    reasons
}

fn read(engine: &Value) -> Result<(), Failure> {
    let table = engine
        .as_table()
        .ok_or_else(|| Failure::new("An engine must be a table."))?;
    Engine::try_from(table.clone())?.check()
}
