//! The models that `kinora models add` has added: their files in `models.d`.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use kinora_engine_catalogue::Places;
use serde::{Deserialize, Serialize};

use super::used::{UsedPaths, real};
use crate::cli::{HomeArgs, WishArgs};
use crate::config::models_folder::{self, KEPT, ModelFile, SERVED};
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

    /// Whether `kinora models add` wrote the file; others are the operator's own.
    pub(super) fn is_in(text: &str) -> bool {
        text.starts_with(RECORD)
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
    let added = files.filter(|file| AddRecord::is_in(&file.text));
    let cards = added.map(|file| {
        let (engines, models) = file.names()?;
        Ok(AddedCard {
            path: file.path,
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
pub(super) fn lock(home: &HomeArgs) -> Result<File, Failure> {
    // Read for its data folder alone: what it says of models may change until they are locked.
    let data = Config::load(home)?.data;
    folder::prepare(&data)?;
    let folder = models_folder::folder(&data);
    let path = folder.join(".lock");
    let failed =
        |error: io::Error| Failure::because(format!("{} cannot be locked", path.display()), error);
    kinora_system::durable::make_folder(&folder).map_err(failed)?;
    let file = File::create(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Failure::new(
            "Another `kinora models` command changes the models of this data folder. Wait until it has ended.",
        )),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// The same, where the folder is there. `None`: no model was ever added, and nothing is made.
pub(super) fn lock_if_used(home: &HomeArgs) -> Result<Option<File>, Failure> {
    let folder = models_folder::folder(&Config::load(home)?.data);
    let is_there = folder.try_exists().map_err(|error| {
        Failure::because(format!("{} cannot be looked at", folder.display()), error)
    })?;
    is_there.then(|| lock(home)).transpose()
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

/// Whether the weights of an engine are here, and its programs below `programs`.
pub(super) fn is_complete(engine: &EngineSettings, programs: &Path) -> bool {
    let files = weights::files_of_engine(engine);
    let mut files = files.iter().map(weights::WeightFile::state);
    files.all(|state| matches!(state, weights::FileState::Complete(_)))
        && UsedPaths::of_engine(engine).are_present_below(programs)
}

/// What becomes of the files of a model that is removed.
#[derive(Clone, Copy, Debug)]
pub(super) enum CardRemoval {
    /// They stay.
    KeepFiles,
    /// They go, but not before the service that runs has ended.
    Whole { is_served: bool },
}

/// Removes the file of a model. Its files are known to be in use as long as the file has another name.
pub(super) fn remove_card(path: &Path, removal: CardRemoval) -> io::Result<()> {
    match removal {
        CardRemoval::KeepFiles => fs::rename(path, models_folder::former_path(path, KEPT))?,
        CardRemoval::Whole { is_served } => {
            if is_served {
                note_served(path)?;
            }
            fs::remove_file(path)?;
        }
    }
    kinora_system::durable::sync_name(path)
}

/// Keeps a copy of the file of a model, for as long as the service that runs has read that.
pub(super) fn note_served(path: &Path) -> io::Result<()> {
    let copy = models_folder::former_path(path, SERVED);
    // An earlier copy is what the service has read; this one is newer than the service.
    if !copy.exists() {
        fs::copy(path, copy)?;
    }
    Ok(())
}

/// Forgets that the files of an earlier removal of the model stay.
pub(super) fn forget_kept(path: &Path) -> io::Result<()> {
    match fs::remove_file(models_folder::former_path(path, KEPT)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes the folders of `file` that are empty, up to `root`.
pub(super) fn remove_empty_folders(file: &Path, root: &Path) {
    // Without `..`, by which a path below the root may lead elsewhere.
    let (file, root) = (real(file), real(root));
    let folders = file.ancestors().skip(1);
    let below = folders.take_while(|folder| *folder != root && folder.starts_with(&root));
    for folder in below {
        // One that is not empty stays, and with it those above.
        if fs::remove_dir(folder).is_err_and(|error| error.kind() != ErrorKind::NotFound) {
            return;
        }
    }
}

/// Removes the file and what an unfinished download has left; returns the bytes, if there was
/// anything. A folder stays.
pub(super) fn remove_file(path: &Path) -> io::Result<Option<u64>> {
    let partial = kinora_http_download::partial_bytes(path);
    let left = kinora_http_download::remove_partial(path)?;
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(partial),
        Ok(found) => {
            fs::remove_file(path)?;
            Ok(Some(found.len() + left))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(partial),
        Err(error) => Err(error),
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
    fn a_path_that_leads_out_of_the_folder_removes_nothing_there() {
        let data = tempfile::tempdir().unwrap();
        let weights = data.path().join("weights");
        fs::create_dir_all(weights.join("o")).unwrap();
        fs::create_dir(data.path().join("other")).unwrap();
        remove_empty_folders(&weights.join("o/../../other/file"), &weights);
        assert!(data.path().join("other").is_dir() && weights.join("o").is_dir());
        assert_eq!(remove_file(&weights.join("o")).unwrap(), None);
        remove_empty_folders(&weights.join("o/r/file"), &weights);
        assert!(weights.is_dir() && !weights.join("o").exists());
    }

    #[test]
    fn a_file_of_a_model_that_is_removed_goes_to_where_it_is_still_read() {
        let data = tempfile::tempdir().unwrap();
        let card = path(data.path(), "wan");
        for (removal, left) in [
            (CardRemoval::Whole { is_served: false }, vec![]),
            (
                CardRemoval::Whole { is_served: true },
                vec![".wan.toml.served"],
            ),
            (CardRemoval::KeepFiles, vec![".wan.toml.kept"]),
        ] {
            let folder = tempfile::tempdir_in(data.path()).unwrap();
            let card = folder.path().join(card.file_name().unwrap());
            fs::write(&card, "").unwrap();
            remove_card(&card, removal).unwrap();
            let names = fs::read_dir(folder.path()).unwrap();
            let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(names, left);
        }
    }
}
