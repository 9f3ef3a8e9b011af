//! `kinora models`: the weights of configured models. Lists and removes them; files that another
//! model uses stay, and so do those that `kinora models pull` could not bring back.

mod check;
mod pull;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use kinora_contract::CardRecord;
use serde_json::{Value, json};

use crate::cli::{HomeArgs, ModelsArgs, ModelsCommand, NamedArgs};
use crate::config::{Config, EngineFile, EngineSettings};
use crate::failure::Failure;
use crate::output::{aligned, count, print, print_message, printable, size};
use crate::weights::{self, FileState, WeightFile};

/// Runs a command about models.
pub(crate) fn run(args: &ModelsArgs) -> Result<(), Failure> {
    match &args.command {
        ModelsCommand::Pull(args) => pull::run(args),
        ModelsCommand::List { json, home } => list(home, *json),
        ModelsCommand::Remove(args) => remove(args),
        ModelsCommand::Check { home, no_load } => check::run(home, !no_load),
    }
}

const HEADS: [&str; 6] = ["MODEL", "ENGINE", "KIND", "STATE", "FILES", "SIZE"];

/// A model, its engine, and its files with their states.
struct ListedModel<'c> {
    model: &'c CardRecord,
    engine: EngineSettings,
    files: Vec<(WeightFile, FileState)>,
    is_by_engine: bool,
}

/// How far the files of a model are present.
#[derive(Clone, Copy)]
enum FilePresence {
    Installed,
    Missing,
    Incomplete,
    /// The engine's command gets them, and alone knows.
    ByEngine,
}

impl FilePresence {
    const fn text(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Missing => "missing",
            Self::Incomplete => "incomplete",
            Self::ByEngine => "by its engine",
        }
    }

    const fn code(self) -> &'static str {
        match self {
            Self::ByEngine => "by_engine",
            other => other.text(),
        }
    }
}

/// Prints the list.
fn list(home: &HomeArgs, json: bool) -> Result<(), Failure> {
    let config = Config::load(home)?;
    let all = config.models.iter().map(|model| list_model(&config, model));
    let all: Vec<ListedModel<'_>> = all.collect::<Result<_, Failure>>()?;
    if json {
        print(&as_json(&all));
        return Ok(());
    }
    print(&as_text(&all));
    if let Some(missing) = weights::missing_files(&config) {
        print(&format!("{}\n", missing.advice(home)));
    }
    Ok(())
}

fn list_model<'c>(config: &Config, model: &'c CardRecord) -> Result<ListedModel<'c>, Failure> {
    let engine = config.engine(&model.engine)?;
    let weights = weights::files_of_engine(&engine).into_iter();
    let files = weights.map(|weight| {
        let state = weight.state();
        (weight, state)
    });
    Ok(ListedModel {
        model,
        files: files.collect(),
        is_by_engine: weights::by_engine(&engine).is_some(),
        engine,
    })
}

impl ListedModel<'_> {
    fn present(&self) -> usize {
        self.files
            .iter()
            .filter(|(_, state)| matches!(state, FileState::Complete(_)))
            .count()
    }

    fn bytes(&self) -> u64 {
        self.files
            .iter()
            .map(|(_, state)| bytes_on_disk(state))
            .sum()
    }

    /// Whether tasks can run, as far as files go.
    fn state(&self) -> FilePresence {
        match (self.present(), self.files.len()) {
            _ if self.is_by_engine => FilePresence::ByEngine,
            (present, all) if present == all => FilePresence::Installed,
            (0, _) if self.bytes() == 0 => FilePresence::Missing,
            _ => FilePresence::Incomplete,
        }
    }
}

/// Bytes of a file on disk.
fn bytes_on_disk(state: &FileState) -> u64 {
    match state {
        FileState::Complete(bytes) | FileState::Missing(bytes) => *bytes,
        FileState::WrongLength { found, .. } => *found,
        FileState::Unreadable(_) => 0,
    }
}

/// A line per model, and one per file that is not as it should be.
fn as_text(all: &[ListedModel<'_>]) -> String {
    let mut rows = vec![HEADS.map(str::to_owned)];
    let mut odd = String::new();
    for listed in all {
        let files = match listed.files.len() {
            0 => "-".to_owned(),
            files => format!("{}/{files}", listed.present()),
        };
        rows.push([
            printable(&listed.model.id),
            printable(&listed.engine.name),
            listed.engine.definition.kind.name.to_owned(),
            listed.state().text().to_owned(),
            files,
            match listed.files.len() {
                0 => "-".to_owned(),
                _ => size(listed.bytes()),
            },
        ]);
        for (file, state) in &listed.files {
            let path = printable(&file.path.to_string_lossy());
            let what = match state {
                FileState::Complete(_) => continue,
                FileState::Missing(0) => "missing".to_owned(),
                FileState::Missing(held) => format!("incomplete, {} are here", size(*held)),
                FileState::WrongLength { found, expected } => {
                    format!("it has {found} bytes, and the configuration says {expected}")
                }
                FileState::Unreadable(why) => printable(why),
            };
            odd.push_str(&format!("{path}: {what}\n"));
        }
    }
    aligned(&rows) + &odd
}

/// A JSON array with one object for each model.
fn as_json(all: &[ListedModel<'_>]) -> String {
    let all: Value = all
        .iter()
        .map(|listed| {
            let files: Vec<Value> = listed.files.iter().map(file_object).collect();
            json!({
                "model": listed.model.id,
                "aliases": listed.model.aliases,
                "engine": listed.engine.name,
                "kind": listed.engine.definition.kind.name,
                "state": listed.state().code(),
                "bytes": listed.bytes(),
                "files": files,
            })
        })
        .collect();
    format!("{all:#}\n")
}

fn file_object((file, state): &(WeightFile, FileState)) -> Value {
    let source = file.source.as_ref();
    let name = match state {
        FileState::Complete(_) => "complete",
        FileState::Missing(0) => "missing",
        FileState::Missing(_) => "incomplete",
        FileState::WrongLength { .. } => "wrong_length",
        FileState::Unreadable(_) => "unreadable",
    };
    json!({
        "path": file.path,
        "state": name,
        "bytes": bytes_on_disk(state),
        "bytes_expected": source.and_then(|source| source.bytes),
        "sha256": source.and_then(EngineFile::sha256),
        "url": source.and_then(EngineFile::url).map(String::from),
    })
}

/// Removes the files of the named models, and prints what happened to each.
fn remove(args: &NamedArgs) -> Result<(), Failure> {
    let config = Config::load(&args.home)?;
    let models = weights::find_models(&config, &args.names)?;
    let ids: Vec<&str> = models.iter().map(|model| &*model.id).collect();
    // Text encoders and decoders are shared between models: a file stays as long as any other
    // model, or an engine without a model, names it.
    let users = other_users(&config, &ids)?;
    let (mut removed, mut freed, mut failed) = (0_u32, 0_u64, 0_u32);
    for file in weights::files_of_models(&config, &models)? {
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
        match remove_file(&file.path) {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                print(&format!("{path}: removed, {}\n", size(bytes)));
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

/// Removes the file and what an unfinished download has left; returns the bytes, if there was
/// anything.
fn remove_file(path: &Path) -> io::Result<Option<u64>> {
    let partial = kinora_http_download::partial_bytes(path);
    let left = kinora_http_download::remove_partial(path)?;
    match fs::metadata(path).map(|found| found.len()) {
        Ok(bytes) => {
            fs::remove_file(path)?;
            Ok(Some(bytes + left))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(partial),
        Err(error) => Err(error),
    }
}
