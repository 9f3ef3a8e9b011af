//! The models that `kinora models add` has added: their files in `models.d`, and what of their files and
//! programs nothing else uses.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use kinora_engine_catalogue::Places;
use serde::{Deserialize, Serialize};
use toml::Value;

use crate::cli::WishArgs;
use crate::config::models_folder::{self, ModelFile};
use crate::config::{Config, EngineSettings};
use crate::failure::Failure;
use crate::folder;
use crate::weights;

/// Begins the comment with the record.
const RECORD: &str = "# kinora models add: ";

/// How a model was added, the first line of its file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddRecord {
    /// What the operator asked for.
    pub(super) wishes: WishArgs,
    /// What the catalogue chose.
    pub(super) choice: String,
}

impl AddRecord {
    /// The file of the model `name` with this card.
    pub(super) fn file(&self, data: &Path, name: &str, card: &str) -> Result<ModelFile, Failure> {
        let record = serde_json::to_string(self)
            .map_err(|error| Failure::because("The model cannot be recorded", error))?;
        Ok(ModelFile {
            path: path(data, name),
            text: format!("{RECORD}{record}\n{card}"),
        })
    }

    /// The record in a file; `None` if it has none that this version can read.
    pub(super) fn read(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix(RECORD)?;
        serde_json::from_str(line).ok()
    }
}

/// A file that `kinora models add` wrote.
#[derive(Debug)]
pub(super) struct AddedCard {
    pub(super) path: PathBuf,
    /// Names of its engines.
    pub(super) engines: Vec<String>,
    /// Ids and aliases of its models.
    pub(super) models: Vec<String>,
}

/// All of them.
pub(super) fn cards(config: &Config) -> Result<Vec<AddedCard>, Failure> {
    let files = models_folder::read(&config.data)?.into_iter();
    // Files without a record are the operator's own.
    let added = files.filter(|file| file.text.starts_with(RECORD));
    let cards = added.map(|file| {
        let (engines, models) = file.names()?;
        let path = file.path;
        Ok(AddedCard {
            path,
            engines,
            models,
        })
    });
    cards.collect()
}

/// The file of the model `name`.
pub(super) fn path(data: &Path, name: &str) -> PathBuf {
    models_folder::folder(data).join(format!("{name}.toml"))
}

/// Where weights and programs of added models are.
pub(super) fn places(config: &Config) -> Result<Places, Failure> {
    // Engines may run in another folder, so their paths are whole.
    let data = std::path::absolute(&config.data)
        .map_err(|error| Failure::because("The data folder has no path", error))?;
    Ok(Places {
        weights: data.join("weights"),
        engines: data.join("engines"),
    })
}

/// Makes the folder of added models, and keeps other commands from changing them until the file is
/// dropped.
pub(super) fn lock(config: &Config) -> Result<File, Failure> {
    folder::prepare(&config.data)?;
    let folder = models_folder::folder(&config.data);
    let path = folder.join(".lock");
    let failed =
        |error: io::Error| Failure::because(format!("{} cannot be locked", path.display()), error);
    kinora_system::durable::make_folder(&folder).map_err(failed)?;
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Failure::new(
            "Another `kinora models` command changes the models of this data folder. Wait until it has ended.",
        )),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Writes the file of a model, or replaces it.
pub(super) fn write(file: &ModelFile) -> Result<(), Failure> {
    let name = file.path.file_name().unwrap_or_default();
    let new = file.path.with_file_name(format!(".{}.new", name.display()));
    let write = || {
        let mut out = File::create(&new)?;
        out.write_all(file.text.as_bytes())?;
        out.sync_all()?;
        fs::rename(&new, &file.path)?;
        kinora_system::durable::sync_name(&file.path)
    };
    write().map_err(|error: io::Error| {
        Failure::because(format!("{} cannot be written", file.path.display()), error)
    })
}

/// The engine of an added model.
pub(super) fn engine_of(config: &Config, name: &str) -> Result<EngineSettings, Failure> {
    let id = config.model_id(name)?;
    let model = config.models.iter().find(|model| model.id == id);
    config.engine(model.map_or(name, |model| &model.engine))
}

/// Whether the weights of an engine are here, and its programs below `programs`.
pub(super) fn is_complete(engine: &EngineSettings, programs: &Path) -> bool {
    let files = weights::files_of_engine(engine);
    let mut files = files.iter().map(weights::WeightFile::state);
    files.all(|state| matches!(state, weights::FileState::Complete(_)))
        && named_programs(engine, programs)
            .iter()
            .all(|path| path.exists())
}

/// The files and programs that an engine uses.
#[derive(Debug)]
pub(super) struct UsedPaths {
    files: BTreeSet<PathBuf>,
    programs: Vec<PathBuf>,
}

impl UsedPaths {
    /// Those of these engines.
    pub(super) fn of(engines: &[EngineSettings], places: &Places) -> Self {
        let files = engines.iter().flat_map(weights::files_of_engine);
        let programs = engines.iter();
        let programs = programs.flat_map(|engine| named_programs(engine, &places.engines));
        Self {
            files: files.map(|file| file.path).collect(),
            programs: programs.collect(),
        }
    }

    /// Removes the downloaded weights and the programs of `self` that are not in `kept`; returns the bytes of weights.
    pub(super) fn remove_unused(&self, kept: &Self, places: &Places) -> io::Result<u64> {
        let mut freed = 0;
        let files = self.files.difference(&kept.files);
        for file in files.filter(|file| file.starts_with(&places.weights)) {
            freed += remove_file(file)?.unwrap_or(0);
            remove_empty_folders(file, &places.weights);
        }
        for program in self.environments(places) {
            if !kept.programs.iter().any(|used| used.starts_with(&program)) {
                fs::remove_dir_all(&program)?;
            }
        }
        Ok(freed)
    }

    /// The folders directly below the programs' one that are used.
    fn environments(&self, places: &Places) -> BTreeSet<PathBuf> {
        let relative = self.programs.iter();
        let relative = relative.filter_map(|path| path.strip_prefix(&places.engines).ok());
        let folders = relative.filter_map(|path| path.components().next());
        let folders = folders.map(|name| places.engines.join(name));
        folders.filter(|folder| folder.is_dir()).collect()
    }
}

/// Removes the folders of `file` that are empty, up to `root`.
pub(super) fn remove_empty_folders(file: &Path, root: &Path) {
    let folders = file.ancestors().skip(1);
    let below = folders.take_while(|folder| *folder != root && folder.starts_with(root));
    for folder in below {
        // One that is not empty stays, and with it those above.
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

/// Removes the file and what an unfinished download has left; returns the bytes, if there was
/// anything.
pub(super) fn remove_file(path: &Path) -> io::Result<Option<u64>> {
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

/// The paths below `folder` that the settings of an engine name.
fn named_programs(engine: &EngineSettings, folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let table = engine.definition.table.values();
    table.for_each(|value| collect_paths(value, folder, &mut found));
    found
}

fn collect_paths(value: &Value, folder: &Path, found: &mut Vec<PathBuf>) {
    match value {
        // A variable such as PYTHONPATH may have several.
        Value::String(text) => {
            let paths = text.split(':').map(PathBuf::from);
            let is_below = |path: &PathBuf| path.starts_with(folder) && path != folder;
            found.extend(paths.filter(is_below));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_paths(item, folder, found)),
        Value::Table(table) => table
            .values()
            .for_each(|item| collect_paths(item, folder, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = AddRecord {
            wishes: WishArgs {
                device: Some("1".to_owned()),
                sd_server: Some("/opt/it's \"mine\"/sd-server".into()),
                ..WishArgs::default()
            },
            choice: "sdcpp Q8_0".to_owned(),
        };
        let file = record
            .file(Path::new("/data"), "wan", "[[engines]]\n")
            .unwrap();
        assert_eq!(file.path, Path::new("/data/models.d/wan.toml"));
        assert_eq!(AddRecord::read(&file.text), Some(record));
        for text in ["", "[[engines]]", "# kinora models add: {\"new\": 1}"] {
            assert_eq!(AddRecord::read(text), None, "{text}");
        }
    }

    #[test]
    fn only_what_nothing_else_uses_is_removed() {
        let data = tempfile::tempdir().unwrap();
        let places = Places {
            weights: data.path().join("weights"),
            engines: data.path().join("engines"),
        };
        let used = |files: &[&str], programs: &[&str]| UsedPaths {
            files: files.iter().map(|name| data.path().join(name)).collect(),
            programs: programs.iter().map(|name| data.path().join(name)).collect(),
        };
        let old = used(
            &["weights/o/r/1/a", "weights/o/r/1/b", "mine"],
            &["engines/venv/bin/python", "engines/old"],
        );
        let new = used(&["weights/o/r/1/b"], &["engines/venv/bin/other"]);
        for file in &old.files {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "four").unwrap();
        }
        for folder in ["engines/venv", "engines/old", "engines/unknown"] {
            fs::create_dir_all(data.path().join(folder)).unwrap();
        }
        assert_eq!(old.remove_unused(&new, &places).unwrap(), 4);
        let is_there = |name: &str| data.path().join(name).exists();
        assert!(!is_there("weights/o/r/1/a") && !is_there("engines/old"));
        for kept in ["weights/o/r/1/b", "mine", "engines/venv", "engines/unknown"] {
            assert!(is_there(kept), "{kept}");
        }
        let none = used(&[], &[]);
        old.remove_unused(&none, &places).unwrap();
        assert!(!is_there("weights/o") && is_there("mine") && !is_there("engines/venv"));
    }
}
