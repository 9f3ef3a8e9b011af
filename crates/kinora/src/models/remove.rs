//! `kinora models remove`: removes added models, and the files of models that nothing else uses.

use kinora_contract::CardRecord;

use super::added::{self, AddedCard, CardRemoval};
use super::sweep::sweep;
use super::used::UsedPaths;
use crate::cli::RemoveArgs;
use crate::config::Config;
use crate::config::models_folder;
use crate::failure::Failure;
use crate::folder;
use crate::output::{count, print, print_message, size};
use crate::weights::{self, FileState};

/// Removes the named models that were added, and the files of all.
pub(super) fn run(args: &RemoveArgs) -> Result<(), Failure> {
    let lock = added::lock_if_used(&args.models.home)?;
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
    // A card may have several models, which go together.
    let is_added = |id: &String| added.iter().any(|card| card.models.contains(id));
    let mut models: Vec<&CardRecord> = config.models.iter().collect();
    models.retain(|model| is_named(&model.id) || is_added(&model.id));
    refuse_used_engines(&config, &added, &models)?;
    let is_served = !added.is_empty() && folder::is_served(&config.data);
    // Of an engine that is set aside nothing is known but its folders, which are swept.
    let is_known = |model: &&CardRecord| config.engine(&model.engine).is_ok();
    models.retain(|model| !is_added(&model.id) || !is_served && is_known(model));
    // The files first: after an interruption the same command goes on.
    if !args.keep_files && !models.is_empty() {
        remove_files(&config, &models)?;
    }
    let removal = if args.keep_files {
        CardRemoval::KeepFiles
    } else {
        CardRemoval::Whole { is_served }
    };
    remove_cards(&added, removal)?;
    if args.keep_files {
        return Ok(());
    }
    if is_served {
        print(STILL_SERVED);
    }
    match lock {
        Some(_locked) => sweep(&Config::load(&args.models.home)?, None),
        None => Ok(()),
    }
}

/// What is left to do beside a service that runs.
pub(super) const STILL_SERVED: &str = "A service runs on this data folder and has its models until it is started again. Files that only it uses are \
     removed by the next `kinora models update` or `kinora models remove` after that.\n";

fn remove_cards(added: &[AddedCard], removal: CardRemoval) -> Result<(), Failure> {
    for card in added {
        let path = &card.path;
        added::remove_card(path, removal).map_err(|error| {
            Failure::because(format!("{} cannot be removed", path.display()), error)
        })?;
        print(&format!("{} is removed.\n", card.models.join(", ")));
    }
    Ok(())
}

/// Refuses to remove the engine of a card while a model that stays runs on it.
fn refuse_used_engines(
    config: &Config,
    added: &[AddedCard],
    models: &[&CardRecord],
) -> Result<(), Failure> {
    let goes = |id: &String| models.iter().any(|model| model.id == *id);
    let is_used = |model: &&CardRecord| {
        !goes(&model.id)
            && added
                .iter()
                .any(|card| card.engines.contains(&model.engine))
    };
    let Some(CardRecord { id, engine, .. }) = config.models.iter().find(is_used) else {
        return Ok(());
    };
    Err(Failure::new(format!(
        "The model '{id}' of the configuration runs on the engine '{engine}': remove it there first."
    )))
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
        let mut users = users.iter();
        if let Some((user, _)) = users.find(|(_, used)| used.has(&file.path, &root)) {
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
    if failed == 0 {
        return Ok(());
    }
    let failed = count(failed, "file");
    Err(Failure::new(format!(
        "{failed} could not be removed, see above"
    )))
}

/// Users of files, except the models with these ids, with what they use.
fn other_users(config: &Config, ids: &[&str]) -> Result<Vec<(String, UsedPaths)>, Failure> {
    let mut users = Vec::new();
    for engine in &config.engines {
        let models = config.models.iter();
        let mut models = models
            .filter(|model| model.engine == engine.name)
            .peekable();
        // An engine without a model is a user itself.
        let user = match models.peek() {
            None => Some(&engine.name),
            Some(_) => models
                .map(|model| &model.id)
                .find(|id| !ids.contains(&&***id)),
        };
        users.extend(user.map(|user| (user.clone(), UsedPaths::of_engine(engine))));
    }
    let mut others = UsedPaths::default();
    for engine in &config.engines_set_aside {
        others.add(&engine.table);
    }
    for file in models_folder::read_former(&config.data)? {
        others.add(&file.table()?.into());
    }
    users.push(("another engine".to_owned(), others));
    Ok(users)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cli::{HomeArgs, NamedArgs};

    const CARD: &str = "# kinora models add: {\"wishes\":{},\"choice\":\"\"}\n\
        [[engines]]\nname = \"wan\"\nkind = \"process\"\ncommand = [\"DATA/engines/../bin/x\", \"DATA/engines/mine/x\"]\n\
        describe = { fps = 16, features = { text_to_video = true } }\n\
        [[engines.files]]\npath = \"DATA/weights/o/r/0123456789ab/a\"\nurl = \"https://a/a\"\n\
        [[engines.files]]\npath = \"DATA/weights/o/s/0123456789ab/b\"\nurl = \"https://a/b\"\n\
        [[models]]\nid = \"wan\"\nengine = \"wan\"\n";
    const OTHER: &str = "[[engines]]\nname = \"other\"\nkind = \"process\"\ncommand = [\"x\"]\n\
        settings = { model = \"DATA/weights/o/s/0123456789ab\" }\n\
        describe = { fps = 16, features = { text_to_video = true } }\n\
        [[models]]\nid = \"other\"\nengine = \"other\"\n";
    const CONFIGURED: &str = "weights/o/s/0123456789ab/b";
    const ADDED: &str = "weights/o/r/0123456789ab/a";

    struct DataFolder(tempfile::TempDir);

    impl DataFolder {
        fn new() -> Self {
            let data = Self(tempfile::tempdir().unwrap());
            let own = ["bin/x", "engines/mine/x", "weights/mine"];
            for name in [ADDED, CONFIGURED, "models.d/x"].into_iter().chain(own) {
                let path = data.0.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            data.write("models.d/wan.toml", CARD);
            data.write("kinora.toml", OTHER);
            data
        }

        fn write(&self, name: &str, text: &str) {
            let text = text.replace("DATA", self.0.path().to_str().unwrap());
            fs::write(self.0.path().join(name), text).unwrap();
        }

        fn has(&self, name: &str) -> bool {
            self.0.path().join(name).exists()
        }

        fn remove(&self, keep_files: bool) -> Result<(), String> {
            let removed = run(&RemoveArgs {
                keep_files,
                models: NamedArgs {
                    names: vec!["wan".to_owned()],
                    home: HomeArgs {
                        config: Some(self.0.path().join("kinora.toml")),
                        data: Some(self.0.path().to_owned()),
                    },
                },
            });
            removed.map_err(|failure| failure.to_string())
        }
    }

    #[test]
    fn a_removal_leaves_what_is_not_the_model_s_alone() {
        let data = DataFolder::new();
        data.remove(false).unwrap();
        assert!(!data.has(ADDED) && !data.has("models.d/wan.toml"));
        for kept in [CONFIGURED, "bin/x", "engines/mine/x", "weights/mine"] {
            assert!(data.has(kept), "{kept}");
        }
    }

    #[test]
    fn files_stay_for_a_service_that_runs_and_for_an_operator_who_wants_it() {
        let data = DataFolder::new();
        let service = folder::mark_served(data.0.path());
        data.remove(false).unwrap();
        assert!(data.has(ADDED) && !data.has("models.d/wan.toml"));
        drop(service);
        data.write("models.d/wan.toml", CARD);
        data.remove(true).unwrap();
        assert!(data.has(ADDED) && !data.has("models.d/wan.toml"));
        let removed = data.remove(false).unwrap_err();
        assert!(removed.contains("no model 'wan'"), "{removed}");
    }
}
