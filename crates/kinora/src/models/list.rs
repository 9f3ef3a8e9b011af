//! `kinora models list`: the configured models, and which of their files are present.

use kinora_contract::CardRecord;
use serde_json::{Value, json};

use super::size::size;
use crate::cli::HomeArgs;
use crate::config::{Config, Engine, EngineFile};
use crate::failure::Failure;
use crate::output::print;
use crate::table::{aligned, printable};
use crate::weights::{self, State, Weight};

const HEADS: [&str; 6] = ["MODEL", "ENGINE", "KIND", "STATE", "FILES", "SIZE"];

/// A model, its engine, and its files with their states.
struct Listed<'c> {
    model: &'c CardRecord,
    engine: Engine,
    files: Vec<(Weight, State)>,
    is_by_engine: bool,
}

/// How far the files of a model are present.
#[derive(Clone, Copy)]
enum Presence {
    Installed,
    Missing,
    Incomplete,
    /// The engine's command gets them, and alone knows.
    ByEngine,
}

impl Presence {
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
pub(super) fn run(home: &HomeArgs, json: bool) -> Result<(), Failure> {
    let config = Config::load(home)?;
    let all = config.models.iter().map(|model| listed(&config, model));
    let all: Vec<Listed<'_>> = all.collect::<Result<_, Failure>>()?;
    if json {
        print(&as_json(&all));
        return Ok(());
    }
    print(&as_text(&all));
    if let Some(missing) = weights::missing(&config) {
        print(&format!("{}\n", missing.advice(home)));
    }
    Ok(())
}

fn listed<'c>(config: &Config, model: &'c CardRecord) -> Result<Listed<'c>, Failure> {
    let engine = config.engine(&model.engine)?;
    let weights = weights::of(&engine).into_iter();
    let files = weights.map(|weight| {
        let state = weight.state();
        (weight, state)
    });
    Ok(Listed {
        model,
        files: files.collect(),
        is_by_engine: weights::by_engine(&engine).is_some(),
        engine,
    })
}

impl Listed<'_> {
    fn present(&self) -> usize {
        self.files
            .iter()
            .filter(|(_, state)| matches!(state, State::Complete(_)))
            .count()
    }

    fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, state)| bytes(state)).sum()
    }

    /// Whether tasks can run, as far as files go.
    fn state(&self) -> Presence {
        match (self.present(), self.files.len()) {
            _ if self.is_by_engine => Presence::ByEngine,
            (present, all) if present == all => Presence::Installed,
            (0, _) if self.bytes() == 0 => Presence::Missing,
            _ => Presence::Incomplete,
        }
    }
}

/// Bytes on disk.
fn bytes(state: &State) -> u64 {
    match state {
        State::Complete(bytes) | State::Missing(bytes) => *bytes,
        State::Odd { found, .. } => *found,
        State::Unreadable(_) => 0,
    }
}

/// A line per model, and one per file that is not as it should be.
fn as_text(all: &[Listed<'_>]) -> String {
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
            listed.engine.told.kind.name.to_owned(),
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
                State::Complete(_) => continue,
                State::Missing(0) => "missing".to_owned(),
                State::Missing(held) => format!("incomplete, {} are here", size(*held)),
                State::Odd { found, expected } => {
                    format!("it has {found} bytes, and the configuration says {expected}")
                }
                State::Unreadable(why) => printable(why),
            };
            odd.push_str(&format!("{path}: {what}\n"));
        }
    }
    aligned(&rows) + &odd
}

/// A JSON array with one object for each model.
fn as_json(all: &[Listed<'_>]) -> String {
    let all: Value = all
        .iter()
        .map(|listed| {
            let files: Vec<Value> = listed.files.iter().map(file_object).collect();
            json!({
                "model": listed.model.id,
                "aliases": listed.model.aliases,
                "engine": listed.engine.name,
                "kind": listed.engine.told.kind.name,
                "state": listed.state().code(),
                "bytes": listed.bytes(),
                "files": files,
            })
        })
        .collect();
    format!("{all:#}\n")
}

fn file_object((file, state): &(Weight, State)) -> Value {
    let source = file.source.as_ref();
    let name = match state {
        State::Complete(_) => "complete",
        State::Missing(0) => "missing",
        State::Missing(_) => "incomplete",
        State::Odd { .. } => "wrong_length",
        State::Unreadable(_) => "unreadable",
    };
    json!({
        "path": file.path,
        "state": name,
        "bytes": bytes(state),
        "bytes_expected": source.and_then(|source| source.bytes),
        "sha256": source.and_then(EngineFile::sha256),
        "url": source.and_then(EngineFile::url).map(String::from),
    })
}
