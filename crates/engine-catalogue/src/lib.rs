//! Models by name. For a machine and a model of the catalogue it chooses how to run the model there, asks the model hub
//! which files that takes, prepares the programs, and writes the card: the piece of configuration that serves the model. It
//! downloads no weights and prints nothing.
//!
//! The modules in the order in which `kinora models add` uses them:
//!
//! 1. `entry`: the [`catalogue`], a file of `catalogue/` per model.
//! 2. `machine`: the GPUs and the memory of this machine.
//! 3. `choice`: the first recipe of a model that fits the machine; [`MemoryNeeds`] has the arithmetic.
//! 4. `environment`: the programs that an engine runs.
//! 5. `hub`: the files of a choice, with their lengths and SHA-256.
//! 6. `card`: the card.

#![forbid(unsafe_code)]

mod card;
mod choice;
mod embedded;
mod entry;
mod environment;
mod files;
mod hub;
mod machine;
mod memory;

pub use card::{Places, card};
pub use choice::{Choice, Wishes, choose};
pub use entry::{
    CatalogueEntry, ClipMemory, DiffusersRecipe, EngineChoice, ModelLicence, ModelRecipe,
    RepositoryFiles, SdcppRecipe, SdcppVariant, catalogue, find,
};
pub use environment::{
    EnvironmentError, EnvironmentKind, EnvironmentOptions, EnvironmentWatcher, PreparedEnvironment,
    SdServerBuild, environments, prepare_environment, remove_environment,
};
pub use hub::{Hub, HubError, HubFile};
pub use machine::{GpuApi, GpuInfo, Machine, nvidia_gpus, select_gpus};
pub use memory::{MemoryNeeds, OffloadMode, WeightPlacement};
