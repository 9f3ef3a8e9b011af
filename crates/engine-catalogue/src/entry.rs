//! The catalogue: one file of `catalogue/` per model, embedded, with the ready-made cards of `models/` that it names. It
//! has no settings of engines: those are in the cards.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use toml::Table;

use crate::embedded::{CARDS, ENTRIES};
use crate::memory::MemoryNeeds;

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
    /// What a step of the largest clip needs beside the weights, which the card does not count: an estimate as that for
    /// stable-diffusion.cpp ([`ClipMemory`]), 31.5 bytes for each value of a token. 0 where the shapes are unknown.
    #[serde(default)]
    pub step_gigabytes: f64,
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
    /// Patterns of the files to get. `*` matches any characters.
    pub include: Vec<String>,
}

/// A model by stable-diffusion.cpp. Its files are those of its card.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SdcppRecipe {
    /// The card: `NAME` is `models/NAME.toml`.
    pub card: String,
    /// What clips need, those of the largest resolutions first.
    pub clips: Vec<ClipMemory>,
    /// Quantisations, the best first.
    pub variants: Vec<SdcppVariant>,
}

/// What the largest clip of some resolutions needs beside the weights, in units of 10^9 bytes.
///
/// The figures are counted by the library's "compute buffer size", which it logs before it computes, with random weights on the
/// processor (stable-diffusion-cpp-python 0.4.7). A step of Wan 1.3B takes 49.6 kB a token and of 5B 96.2 kB, which is 31.5 bytes
/// for each value of a token; 14B has 5,120 of those, so 161 kB. VACE's control takes a quarter more, which is an estimate.
/// Decoding takes 31.9 kB a pixel (5B: 38.3 kB), and encoding the frames for I2V, FLF2V and VACE 41.3 kB; tiles are of 256 (5B: 512)
/// pixels, and for encoding of 328.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClipMemory {
    /// The `resolutions` of the models; those of the card if empty.
    #[serde(default)]
    pub resolutions: Vec<String>,
    /// To decode, or to encode the frames of the request.
    pub decode_gigabytes: f64,
    /// The same by tiles.
    pub tiled_decode_gigabytes: f64,
    /// For a step.
    pub step_gigabytes: f64,
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

/// All models, sorted by name.
pub fn catalogue() -> &'static [CatalogueEntry] {
    // All parse: a test reads each.
    static PARSED: LazyLock<Vec<CatalogueEntry>> = LazyLock::new(|| {
        let entries = ENTRIES.iter().map(|(_, text)| toml::from_str(text));
        entries.filter_map(Result::ok).collect()
    });
    &PARSED
}

/// The model of this name.
///
/// # Errors
/// A sentence with the names that are close, or all.
pub fn find(name: &str) -> Result<&'static CatalogueEntry, String> {
    let mut entries = catalogue().iter();
    entries.find(|entry| entry.name == name).ok_or_else(|| {
        let names = || catalogue().iter().map(|entry| entry.name.as_str());
        let close: Vec<&str> = names().filter(|known| are_close(name, known)).collect();
        let advice = if close.is_empty() {
            format!("it has {}.", names().collect::<Vec<_>>().join(", "))
        } else {
            format!("did you mean {}?", close.join(" or "))
        };
        let name = name.escape_debug();
        format!("The catalogue has no model '{name}'; {advice}")
    })
}

/// Whether one name is a part of the other, or at most three typing errors away.
fn are_close(name: &str, known: &str) -> bool {
    let plain = |text: &str| -> String {
        let all = text.chars().flat_map(char::to_lowercase);
        all.filter(|one| one.is_alphanumeric()).take(64).collect()
    };
    let (name, known) = (plain(name), plain(known));
    name.len() >= 3 && known.contains(&name) || strsim::levenshtein(&name, &known) <= 3
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
        let name = match self {
            Self::Diffusers(recipe) => &recipe.card,
            Self::Sdcpp(recipe) => &recipe.card,
        };
        let text = CARDS.iter().find(|(card, _)| card == name);
        let parsed = text.and_then(|(_, text)| toml::from_str(text).ok());
        parsed.unwrap_or_default()
    }
}

impl SdcppVariant {
    /// What it needs. Layers cannot wait in main memory, so none has a size of its own.
    pub(crate) fn memory(&self, clip: &ClipMemory) -> MemoryNeeds {
        MemoryNeeds {
            device_gigabytes: 0.0,
            parts_gigabytes: self.parts_gigabytes.clone(),
            layer_gigabytes: f64::INFINITY,
            step_gigabytes: clip.step_gigabytes,
            decode_gigabytes: clip.decode_gigabytes,
            tiled_decode_gigabytes: clip.tiled_decode_gigabytes,
        }
    }

    /// Size of all files.
    pub fn gigabytes(&self) -> f64 {
        self.parts_gigabytes.values().sum()
    }
}

/// The table of the card's engine.
pub(crate) fn engine_table(card: &Table) -> Option<&Table> {
    card.get("engines")?.as_array()?.first()?.as_table()
}

fn main_branch() -> String {
    "main".to_owned()
}
