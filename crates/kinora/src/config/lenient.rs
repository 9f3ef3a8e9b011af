//! The configuration of a process that serves only the API. It opens no engine, so an engine with
//! an unknown kind or unknown settings must not stop it. It serves the models of such engines as
//! their cards describe them.

use toml::{Table, Value};

use super::Engine;
use crate::failure::Failure;

/// Removes from `settings` the engines that this program cannot read, if it runs none. Returns the
/// reasons.
pub(super) fn set_aside_engines(settings: &mut Table) -> Vec<String> {
    if settings
        .get("worker")
        .and_then(|worker| worker.get("enabled").and_then(Value::as_bool))
        != Some(false)
    {
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
