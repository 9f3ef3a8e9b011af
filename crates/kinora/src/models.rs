//! `kinora models`: models of the catalogue, and the weights of configured ones. Lists and removes
//! them; files that another model uses stay, and so do those that `kinora models pull` could not
//! bring back.

mod add;
mod added;
mod available;
mod check;
mod environment_line;
mod machine_text;
mod pull;
mod remove;
mod sweep;
mod used;

use kinora_contract::CardRecord;
use serde_json::{Value, json};

use crate::cli::{HomeArgs, ModelsCommand};
use crate::config::{Config, EngineFile, EngineSettings};
use crate::failure::Failure;
use crate::output::{print, printable, size, table};
use crate::weights::{self, FileState, WeightFile};

/// Runs a command about models.
pub(crate) fn run(command: &ModelsCommand) -> Result<(), Failure> {
    match command {
        ModelsCommand::Add(args) => add::add(args),
        ModelsCommand::Update(args) => add::update(args),
        ModelsCommand::Pull(args) => pull::run(args),
        ModelsCommand::List {
            available: true,
            json,
            ..
        } => {
            available::list(*json);
            Ok(())
        }
        ModelsCommand::List { json, home, .. } => list(home, *json),
        ModelsCommand::Remove(args) => remove::run(args),
        ModelsCommand::Check { home, no_load } => check::run(home, !no_load),
    }
}

/// State of a model whose engine gets the files.
const BY_ENGINE: &str = "by_engine";
const HEADS: [&str; 6] = ["MODEL", "ENGINE", "KIND", "STATE", "FILES", "SIZE"];

/// A model, its engine, and its files with their states.
struct ListedModel<'c> {
    model: &'c CardRecord,
    engine: EngineSettings,
    files: Vec<(WeightFile, FileState)>,
    is_by_engine: bool,
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
    for note in &config.notes {
        print(&format!("{note}\n"));
    }
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
        let states = self.files.iter().map(|(_, state)| state);
        states.map(bytes_on_disk).sum()
    }

    /// Whether tasks can run, as far as files go.
    fn state(&self) -> &'static str {
        match (self.present(), self.files.len()) {
            // The engine's command gets them, and alone knows.
            _ if self.is_by_engine => BY_ENGINE,
            (present, all) if present == all => "installed",
            (0, _) if self.bytes() == 0 => "missing",
            _ => "incomplete",
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
    let mut rows = Vec::new();
    let mut odd = String::new();
    for listed in all {
        let (files, bytes) = match listed.files.len() {
            0 => ("-".to_owned(), "-".to_owned()),
            files => (
                format!("{}/{files}", listed.present()),
                size(listed.bytes()),
            ),
        };
        let state = match listed.state() {
            BY_ENGINE => "by its engine",
            other => other,
        };
        rows.push([
            printable(&listed.model.id),
            printable(&listed.engine.name),
            listed.engine.definition.kind.name.to_owned(),
            state.to_owned(),
            files,
            bytes,
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
    table(HEADS, rows) + &odd
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
                "state": listed.state(),
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
