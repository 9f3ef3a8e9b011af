//! The catalogue: one file of `catalogue/` per model, embedded, with the ready-made cards of `models/` that it names. It
//! has no settings of engines: those are in the cards.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use toml::Table;

/// A model of the catalogue.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogueEntry {
    /// The name, which is also the identifier of the served model.
    pub name: String,
    /// The name in its authors' spelling.
    pub title: String,
    /// What it makes, in a few words.
    pub makes: String,
    /// Licence of the weights.
    pub licence: ModelLicence,
    /// Ways to run it, the best first.
    pub recipes: Vec<ModelRecipe>,
}

/// The licence of weights.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelLicence {
    /// Its name.
    pub name: String,
    /// The page with its text.
    pub url: String,
}

/// An engine of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineChoice {
    /// Pipelines of diffusers, in 16 bits, on NVIDIA's GPUs.
    Diffusers,
    /// stable-diffusion.cpp, quantised, on the GPUs of all makers.
    Sdcpp,
}

/// A way to run a model.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "engine", rename_all = "lowercase")]
pub enum ModelRecipe {
    /// By diffusers.
    Diffusers(DiffusersRecipe),
    /// By stable-diffusion.cpp.
    Sdcpp(SdcppRecipe),
}

/// A model by diffusers. The memory that it needs is in its card.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiffusersRecipe {
    /// The card: `diffusers/NAME` is `models/diffusers/NAME.toml`.
    pub card: String,
    /// The files to get. The first repository is the pipeline.
    pub repositories: Vec<RepositoryFiles>,
    /// Size of all files, approximately.
    pub gigabytes: f64,
}

/// Files of a repository of the model hub.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepositoryFiles {
    /// `ORGANISATION/NAME`.
    pub id: String,
    /// Branch, tag or commit.
    #[serde(default = "main_branch")]
    pub revision: String,
    /// Patterns of the files to get; all if empty. `*` matches any characters.
    #[serde(default)]
    pub include: Vec<String>,
    /// Patterns of files that are not needed.
    #[serde(default)]
    pub exclude: Vec<String>,
}

/// A model by stable-diffusion.cpp. Its files are those of its card.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SdcppRecipe {
    /// The card: `NAME` is `models/NAME.toml`.
    pub card: String,
    /// What decoding the largest clip needs, in units of 10^9 bytes.
    pub decode_gigabytes: f64,
    /// The same by tiles.
    pub tiled_decode_gigabytes: f64,
    /// Quantisations, the best first.
    pub variants: Vec<SdcppVariant>,
}

/// A quantisation of a model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SdcppVariant {
    /// Its name, such as `Q8_0`.
    pub label: String,
    /// Size of each part, in units of 10^9 bytes.
    pub parts_gigabytes: BTreeMap<String, f64>,
    /// Address of the file for a key of `[engines.model]`, where it is not the one in the card.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

/// A name that the catalogue does not have.
#[derive(Debug, thiserror::Error)]
#[error("the catalogue has no model '{name}'; {advice}")]
pub struct UnknownModel {
    name: String,
    advice: String,
}

/// All models, sorted by name.
pub fn catalogue() -> &'static [CatalogueEntry] {
    static ENTRIES: LazyLock<Vec<CatalogueEntry>> = LazyLock::new(Vec::new);
    &ENTRIES
}

/// The model of this name.
///
/// # Errors
/// [`UnknownModel`], with the names that are close.
pub fn find(name: &str) -> Result<&'static CatalogueEntry, UnknownModel> {
    let mut entries = catalogue().iter();
    entries
        .find(|entry| entry.name == name)
        .ok_or_else(|| UnknownModel {
            name: name.to_owned(),
            advice: String::new(),
        })
}

impl ModelRecipe {
    /// The engine.
    pub fn engine(&self) -> EngineChoice {
        match self {
            Self::Diffusers(_) => EngineChoice::Diffusers,
            Self::Sdcpp(_) => EngineChoice::Sdcpp,
        }
    }

    /// The ready-made card.
    pub(crate) fn card(&self) -> Table {
        Table::new()
    }
}

fn main_branch() -> String {
    "main".to_owned()
}
