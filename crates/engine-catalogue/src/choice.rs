//! Which recipe of a model fits a machine, and with which settings.

use std::path::PathBuf;

use crate::entry::{CatalogueEntry, EngineChoice, ModelRecipe};
use crate::environment::EnvironmentKind;
use crate::machine::{GpuInfo, Machine};
use crate::memory::WeightPlacement;

/// What the operator asks for; all are optional.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// A GPU by its number or the beginning of its UUID, or `cpu`.
    pub device: Option<String>,
    /// An engine.
    pub engine: Option<EngineChoice>,
    /// A quantisation, by its label.
    pub variant: Option<String>,
    /// The operator's own build of `sd-server`.
    pub sd_server: Option<PathBuf>,
}

/// How a model will run on a machine.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The model.
    pub entry: &'static CatalogueEntry,
    /// The chosen way to run it.
    pub recipe: &'static ModelRecipe,
    /// The GPU; `None` for the processor.
    pub device: Option<GpuInfo>,
    /// Label of the quantisation, if the recipe has some.
    pub variant: Option<&'static str>,
    /// Where the weights wait, and whether a clip is decoded by tiles.
    pub placement: WeightPlacement,
    /// Memory that a run needs on the device by arithmetic, in units of 10^9 bytes.
    pub needs_gigabytes: f64,
    /// Size of the files, approximately.
    pub download_gigabytes: f64,
    /// The programs that it needs.
    pub environment: EnvironmentKind,
    /// The reasons, in a sentence.
    pub why: String,
}

/// Why no recipe fits: a sentence each, with what would help.
#[derive(Debug, thiserror::Error)]
#[error("{}", .reasons.join("\n"))]
pub struct NoFit {
    /// The sentences.
    pub reasons: Vec<String>,
}

/// The first recipe of `entry` that fits `machine`.
///
/// # Errors
/// [`NoFit`] with a reason for each recipe.
pub fn choose(
    entry: &'static CatalogueEntry,
    machine: &Machine,
    wishes: &Wishes,
) -> Result<Choice, NoFit> {
    let drivers = machine.gpus.iter().map(GpuInfo::driver_major);
    Err(NoFit {
        reasons: drivers
            .map(|driver| format!("{} {driver:?} {wishes:?}", entry.name))
            .collect(),
    })
}
