//! `kinora models remove`: removes the files of models. Files that another model uses stay, and so
//! do those that `kinora models pull` could not bring back.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::size::size;
use crate::cli::NamedArgs;
use crate::config::Config;
use crate::count::count;
use crate::failure::Failure;
use crate::output::{print, say};
use crate::weights::{self, State, Weight};

/// Removes them, and prints what became of each.
pub(super) fn run(args: &NamedArgs) -> Result<(), Failure> {
    let config = Config::load(&args.home)?;
    let models = weights::models(&config, &args.names)?;
    let ids: Vec<&str> = models.iter().map(|model| &*model.id).collect();
    let users = others(&config, &ids)?;
    let (mut removed, mut freed, mut failed) = (0_u32, 0_u64, 0_u32);
    for file in weights::of_models(&config, &models)? {
        if file.state() == State::Missing(0) {
            continue;
        }
        let path = file.path.display();
        if let Some((user, _)) = users.iter().find(|(_, used)| used.contains(&file)) {
            print(&format!("{path}: kept, {user} uses it\n"));
            continue;
        }
        if file.source.is_none() {
            print(&format!(
                "{path}: kept, because the configuration has no url to download it from again\n"
            ));
            continue;
        }
        match remove(&file.path) {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                print(&format!("{path}: removed, {}\n", size(bytes)));
                removed += 1;
                freed += bytes;
            }
            Err(error) => {
                say(&format!("{path}: {error}"));
                failed += 1;
            }
        }
    }
    print(&format!(
        "{} removed, {} freed.\n",
        count(removed, "file"),
        size(freed)
    ));
    match failed {
        0 => Ok(()),
        failed => Err(Failure::new(format!(
            "{} could not be removed, see above",
            count(failed, "file")
        ))),
    }
}

/// The paths that a model, or an engine without a model, uses.
#[derive(Debug)]
struct Used(Vec<Weight>);

impl Used {
    fn contains(&self, file: &Weight) -> bool {
        self.0.iter().any(|used| used.path == file.path)
    }
}

/// Everything in the configuration that uses files, except the models with these ids.
fn others(config: &Config, ids: &[&str]) -> Result<Vec<(String, Used)>, Failure> {
    let mut users = Vec::new();
    for model in &config.models {
        if !ids.contains(&&*model.id) {
            let used = weights::of(&config.engine(&model.engine)?);
            users.push((model.id.clone(), Used(used)));
        }
    }
    for engine in &config.engines {
        if !config
            .models
            .iter()
            .any(|model| model.engine == engine.name)
        {
            users.push((engine.name.clone(), Used(weights::of(engine))));
        }
    }
    Ok(users)
}

/// Removes the file and what an unfinished download has left; returns the bytes, if there was
/// anything.
fn remove(path: &Path) -> io::Result<Option<u64>> {
    let partial = kinora_download::partial_bytes(path);
    let left = kinora_download::remove_partial(path)?;
    match fs::metadata(path).map(|found| found.len()) {
        Ok(bytes) => {
            fs::remove_file(path)?;
            Ok(Some(bytes + left))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(partial),
        Err(error) => Err(error),
    }
}
