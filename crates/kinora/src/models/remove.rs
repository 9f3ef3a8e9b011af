//! `kinora models remove`: removes added models, and the files of models that nothing else uses.

use std::fs;

use kinora_contract::CardRecord;

use super::added::{self, AddedCard, UsedPaths};
use crate::cli::RemoveArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::output::{count, print, print_message, size};
use crate::weights::{self, FileState, WeightFile};

/// Removes the named models that were added, and the files of all.
pub(super) fn run(args: &RemoveArgs) -> Result<(), Failure> {
    let config = Config::load(&args.models.home)?;
    let named = weights::find_models(&config, &args.models.names)?;
    let is_named = |id: &String| named.iter().any(|model| model.id == *id);
    let mut added = added::cards(&config)?;
    added.retain(|card| card.models.iter().any(is_named));
    if added.is_empty() && args.keep_files {
        return Err(Failure::new(
            "`kinora models add` has added none of these models: remove them from your configuration.",
        ));
    }
    if added.is_empty() {
        return remove_files(&config, &named);
    }
    let _lock = added::lock(&config)?;
    // A card may have several models, which go together.
    let is_removed =
        |id: &String| is_named(id) || added.iter().any(|card| card.models.contains(id));
    let models = config.models.iter().filter(|model| is_removed(&model.id));
    let models: Vec<&CardRecord> = models.collect();
    refuse_used_engines(&config, &added, &models)?;
    // The files first: after an interruption the same command goes on.
    if !args.keep_files {
        remove_files(&config, &models)?;
    }
    for card in &added {
        let path = &card.path;
        fs::remove_file(path).map_err(|error| {
            Failure::because(format!("{} cannot be removed", path.display()), error)
        })?;
        print(&format!("{} is removed.\n", card.models.join(", ")));
    }
    if !args.keep_files {
        let places = added::places(&config)?;
        let rest = Config::load(&args.models.home)?;
        let kept = UsedPaths::of(&rest.engines, &places);
        let unused = UsedPaths::of(&config.engines, &places).remove_unused(&kept, &places);
        unused.map_err(|error| Failure::because("Programs of its engine remain", error))?;
    }
    print("A service that runs serves it until a restart.\n");
    Ok(())
}

/// Refuses to remove the engine of a card while a model that stays runs on it.
fn refuse_used_engines(
    config: &Config,
    added: &[AddedCard],
    models: &[&CardRecord],
) -> Result<(), Failure> {
    let engines = added.iter().flat_map(|card| &card.engines);
    let engines: Vec<&String> = engines.collect();
    let goes = |id: &String| models.iter().any(|model| model.id == *id);
    let mut stay = config.models.iter().filter(|model| !goes(&model.id));
    match stay.find(|model| engines.contains(&&model.engine)) {
        None => Ok(()),
        Some(model) => Err(Failure::new(format!(
            "The model '{}' of the configuration runs on the engine '{}': remove it there first.",
            model.id, model.engine
        ))),
    }
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
