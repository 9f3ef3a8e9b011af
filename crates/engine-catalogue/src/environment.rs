//! The programs that engines run, prepared in folders of their own below one folder. Each step can be repeated: what is ready
//! stays, and what is unfinished is continued or made anew. It installs nothing outside of these folders.

mod archive;
mod folder;
mod interpreter;
mod kind;
mod package;
mod program;
mod release;
mod sd_server;
#[cfg(test)]
mod tests;
mod venv;

use std::collections::BTreeMap;
use std::path::Path;

pub use folder::{environments, remove_environment};
pub use kind::{
    EnvironmentError, EnvironmentKind, EnvironmentOptions, EnvironmentWatcher, PreparedEnvironment,
    SdServerBuild,
};

use crate::card::Places;
use interpreter::ProgramContext;

/// Prepares the programs of `kind` below `places.engines`, unless they are ready.
///
/// # Errors
/// [`EnvironmentError`] with what to do.
pub async fn prepare_environment(
    kind: &EnvironmentKind,
    places: &Places,
    options: &EnvironmentOptions,
    watcher: &dyn EnvironmentWatcher,
) -> Result<PreparedEnvironment, EnvironmentError> {
    match kind {
        EnvironmentKind::SdServer(build) => {
            sd_server::prepare_server(build, &places.engines, options, watcher).await
        }
        EnvironmentKind::Diffusers => {
            prepare_diffusers(&places.engines, &ProgramContext::inherited(), watcher).await
        }
    }
}

async fn prepare_diffusers(
    engines: &Path,
    context: &ProgramContext,
    watcher: &dyn EnvironmentWatcher,
) -> Result<PreparedEnvironment, EnvironmentError> {
    let package = package::write_package(engines)?;
    let (folder, python) = venv::prepare_venv(engines, &package, context, watcher).await?;
    let target = ["-m", "kinora_engine", "kinora_engine.diffusers:Pipeline"];
    Ok(PreparedEnvironment {
        folder,
        command: [python.display().to_string()]
            .into_iter()
            .chain(target.map(str::to_owned))
            .collect(),
        environment: BTreeMap::from([("PYTHONPATH".to_owned(), package.display().to_string())]),
    })
}
