//! `kinora models remove`: removes added models, and the files of models that nothing else uses.

use std::fs;
use std::path::PathBuf;

use kinora_contract::CardRecord;

use super::added::{self, UsedPaths};
use crate::cli::RemoveArgs;
use crate::config::{Config, EngineSettings};
use crate::failure::Failure;
use crate::output::{count, print, print_message, size};
use crate::weights::{self, FileState, WeightFile};

/// Removes the named models that were added, and the files of all.
pub(super) fn run(args: &RemoveArgs) -> Result<(), Failure> {
    let config = Config::load(&args.models.home)?;
    let models = weights::find_models(&config, &args.models.names)?;
    let added: Vec<(&CardRecord, PathBuf)> = models
        .iter()
        .map(|model| (*model, added::path(&config.data, &model.id)))
        .filter(|(_, path)| path.exists())
        .collect();
    if added.is_empty() && args.keep_files {
        return Err(Failure::new(
            "`kinora models add` has added none of these models: remove them from your configuration.",
        ));
    }
    if added.is_empty() {
        return remove_files(&config, &models);
    }
    let _lock = added::lock(&config)?;
    refuse_used_engines(&config, &added)?;
    // The files first: after an interruption the same command goes on.
    if !args.keep_files {
        remove_files(&config, &models)?;
    }
    let places = added::places(&config)?;
    let engines = added.iter().map(|(model, _)| config.engine(&model.engine));
    let engines: Vec<EngineSettings> = engines.collect::<Result<_, _>>()?;
    for (model, path) in &added {
        fs::remove_file(path).map_err(|error| {
            Failure::because(format!("{} cannot be removed", path.display()), error)
        })?;
        print(&format!("{} is removed.\n", model.id));
    }
    if !args.keep_files {
        let rest = Config::load(&args.models.home)?;
        let kept = UsedPaths::of(&rest.engines, &places);
        let unused = UsedPaths::of(&engines, &places).remove_unused(&kept, &places);
        unused.map_err(|error| Failure::because("Programs of its engine remain", error))?;
    }
    print("A service that runs serves it until a restart.\n");
    Ok(())
}

/// Refuses to remove the engine of an added model while another model runs on it.
fn refuse_used_engines(config: &Config, added: &[(&CardRecord, PathBuf)]) -> Result<(), Failure> {
    let is_removed = |id: &String| added.iter().any(|(model, _)| model.id == *id);
    for (model, _) in added {
        let mut others = config.models.iter();
        let other = others.find(|one| one.engine == model.engine && !is_removed(&one.id));
        if let Some(other) = other {
            return Err(Failure::new(format!(
                "The model '{}' runs on the engine of '{}': remove it from the configuration first.",
                other.id, model.id
            )));
        }
    }
    Ok(())
}

/// Removes the files of models, and prints what happened to each.
fn remove_files(config: &Config, models: &[&CardRecord]) -> Result<(), Failure> {
    let root = added::places(config)?.weights;
    let ids: Vec<&str> = models.iter().map(|model| &*model.id).collect();
    // Text encoders and decoders are shared between models: a file stays as long as any other
    // model, or an engine without a model, names it.
    let users = other_users(config, &ids)?;
    let (mut removed, mut freed, mut failed) = (0_u32, 0_u64, 0_u32);
    for file in weights::files_of_models(config, models)? {
        if file.state() == FileState::Missing(0) {
            continue;
        }
        let path = file.path.display();
        if let Some((user, _)) = users.iter().find(|(_, used)| used.contains(&file)) {
            print(&format!("{path}: kept, {user} uses it\n"));
            continue;
        }
        // The operator put it there, perhaps as the only copy.
        if file.source.is_none() {
            print(&format!(
                "{path}: kept, because the configuration has no url to download it from again\n"
            ));
            continue;
        }
        match added::remove_file(&file.path) {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                print(&format!("{path}: removed, {}\n", size(bytes)));
                added::remove_empty_folders(&file.path, &root);
                removed += 1;
                freed += bytes;
            }
            Err(error) => {
                print_message(&format!("{path}: {error}"));
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
struct UsedFiles(Vec<WeightFile>);

impl UsedFiles {
    fn contains(&self, file: &WeightFile) -> bool {
        self.0.iter().any(|used| used.path == file.path)
    }
}

/// Users of files in the configuration, except the models with these ids, with their files.
fn other_users(config: &Config, ids: &[&str]) -> Result<Vec<(String, UsedFiles)>, Failure> {
    let mut users = Vec::new();
    for model in &config.models {
        if !ids.contains(&&*model.id) {
            let used = weights::files_of_engine(&config.engine(&model.engine)?);
            users.push((model.id.clone(), UsedFiles(used)));
        }
    }
    for engine in &config.engines {
        if !config
            .models
            .iter()
            .any(|model| model.engine == engine.name)
        {
            users.push((
                engine.name.clone(),
                UsedFiles(weights::files_of_engine(engine)),
            ));
        }
    }
    Ok(users)
}
