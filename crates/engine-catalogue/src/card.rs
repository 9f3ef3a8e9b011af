//! The card of a choice: the piece of configuration with the engine, its files and the model. It is the ready-made card
//! with the paths, the programs and the settings of this machine. Comments of the ready-made card do not come along.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::choice::Choice;
use crate::entry::ModelRecipe;
use crate::environment::{EnvironmentKind, PreparedEnvironment, SdServerBuild};
use crate::files::model_files;
use crate::hub::HubFile;
use crate::machine::{GpuApi, GpuInfo};
use crate::memory::{FILLED_MAX, OffloadMode};

/// Limit without progress where no GPU works: a day.
const CPU_SILENCE_SECONDS: i64 = 86_400;

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
        self.repository_path(file).join(&file.path)
    }

    /// The folder of a file's repository and commit.
    fn repository_path(&self, file: &HubFile) -> PathBuf {
        let commit = file.commit.get(..12).unwrap_or(&file.commit);
        self.weights.join(&file.repository).join(commit)
    }
}

/// The card, in TOML: `[[engines]]` and `[[models]]`, with a comment on how it was made and is removed.
pub fn card(
    choice: &Choice,
    files: &[HubFile],
    places: &Places,
    environment: &PreparedEnvironment,
) -> String {
    let name = &choice.entry.name;
    let mut card = choice.recipe.card();
    if let Some(engine) = engine_table_mut(&mut card) {
        set(engine, "name", name.as_str());
        match choice.recipe {
            ModelRecipe::Diffusers(recipe) => {
                set(engine, "command", environment.command.clone());
                if !environment.environment.is_empty() {
                    set(engine, "environment", environment.environment.clone());
                }
                set_pipeline(engine, choice, files, places);
                if let Some(memory) = subtable(engine, "memory") {
                    set(memory, "step_gigabytes", recipe.step_gigabytes);
                }
            }
            ModelRecipe::Sdcpp(_) => {
                set(engine, "kind", "sdcpp");
                if let Some(server) = environment.command.first() {
                    set(engine, "server", server.as_str());
                }
                set_parts(engine, choice, files, places);
            }
        }
        let files: Vec<Table> = files.iter().map(|file| source(file, places)).collect();
        set(engine, "files", files);
    }
    set_device(&mut card, choice);
    set_patience(&mut card, choice);
    set_models(&mut card, choice);
    let licence = &choice.entry.licence;
    // `Table` has no value that TOML cannot write.
    let body = toml::to_string(&card).unwrap_or_default();
    format!(
        "# {title}: {makes}.\n\
         # Licence of the weights: {licence_name}, {licence_url}\n\
         # Made by `kinora models add {name}` for {why}.\n\
         # To change it, add the model again with other options. To remove it: kinora models remove {name}\n\n{body}",
        title = choice.entry.title,
        makes = choice.entry.makes,
        licence_name = licence.name,
        licence_url = licence.url,
        why = choice.why,
    )
}

/// The device, the folders of repositories, and what waits in main memory.
fn set_pipeline(engine: &mut Table, choice: &Choice, files: &[HubFile], places: &Places) {
    if let Some(gpu) = bound_gpu(choice) {
        // The UUID stays when GPUs are added.
        set(engine, "devices", vec![gpu.uuid.as_str()]);
    }
    let folders = files
        .iter()
        .map(|file| (file.repository.as_str(), places.repository_path(file)));
    let folders = folders.collect();
    let Some(Value::Table(settings)) = engine.get_mut("settings") else {
        return;
    };
    settings
        .iter_mut()
        .for_each(|(_, value)| replace_texts(value, &folders));
    settings.remove("offload_options");
    let offload = match choice.placement.offload {
        OffloadMode::None => "none",
        OffloadMode::Model => "model",
        OffloadMode::Layers => {
            let leaf = BTreeMap::from([("offload_type", "leaf_level")]);
            set(settings, "offload_options", leaf);
            "group"
        }
    };
    set(settings, "offload", offload);
    // Not every pipeline has tiles: only those that need them get the setting.
    if choice.placement.tiles {
        set(settings, "vae_tiling", true);
    }
}

/// The device, the files, and what waits in main memory.
fn set_parts(engine: &mut Table, choice: &Choice, files: &[HubFile], places: &Places) {
    let Some(model) = subtable(engine, "model") else {
        return;
    };
    for (key, wanted) in model_files(choice) {
        let mut files = files.iter();
        if let Some(file) =
            files.find(|file| file.repository == wanted.id && wanted.takes(&file.path))
        {
            set(model, &key, path_text(&places.weight_path(file)));
        }
    }
    let is_offloaded = choice.placement.offload == OffloadMode::Model;
    set(model, "offload_to_cpu", is_offloaded);
    set(model, "vae_tiling", choice.placement.tiles);
    // The server counts in the order of nvidia-smi, which Kinora sets for its processes. Of Vulkan's order nothing is known.
    if let Some(gpu) = bound_gpu(choice).filter(|_| is_bound(choice)) {
        set(model, "backend", format!("cuda{}", gpu.index));
    }
}

/// Whether the card can say which GPU the engine takes.
fn is_bound(choice: &Choice) -> bool {
    match &choice.environment {
        EnvironmentKind::Diffusers => true,
        EnvironmentKind::SdServer(build) => *build == SdServerBuild::Cuda12,
    }
}

/// The GPU of NVIDIA to which the engine must be bound, because there are others.
fn bound_gpu(choice: &Choice) -> Option<&GpuInfo> {
    let gpu = choice.device.as_ref().filter(|_| choice.is_one_of_many);
    gpu.filter(|gpu| gpu.api != GpuApi::Vulkan)
}

/// Has the engine share its GPU: two added models rarely fit beside each other, and an idle one gives its memory back.
fn set_device(card: &mut Table, choice: &Choice) {
    let Some(gpu) = choice.device.as_ref().filter(|gpu| gpu.memory_bytes > 0) else {
        return;
    };
    // Of several GPUs, other builds of the server than CUDA's take one of their own choice, which may be another.
    if choice.is_one_of_many && !is_bound(choice) {
        return;
    }
    let name = if gpu.uuid.is_empty() {
        &gpu.index
    } else {
        &gpu.uuid
    };
    let usable = gpu.memory_bytes as f64 / 1e6 * FILLED_MAX;
    let needed = (choice.needs_gigabytes * 1e3).min(usable);
    let megabytes = |figure: f64| (figure.floor() as i64).max(1);
    if let Some(engine) = engine_table_mut(card) {
        set(engine, "device", name.as_str());
        set(engine, "memory_megabytes", megabytes(needed));
    }
    let mut device = Table::new();
    set(&mut device, "name", name.as_str());
    set(&mut device, "memory_megabytes", megabytes(usable));
    set(card, "devices", vec![device]);
}

/// On a processor a step may take hours, and shows nothing before it ends.
fn set_patience(card: &mut Table, choice: &Choice) {
    let engine = engine_table_mut(card).filter(|_| choice.device.is_none());
    if let Some(host) = engine.and_then(|engine| subtable(engine, "host")) {
        set(host, "silence_seconds", CPU_SILENCE_SECONDS);
    }
}

/// Replaces each text that is a repository by its folder, at any depth: a pipeline, or a LoRA.
fn replace_texts(value: &mut Value, folders: &BTreeMap<&str, PathBuf>) {
    match value {
        Value::String(id) => {
            if let Some(folder) = folders.get(id.as_str()) {
                *value = path_text(folder).into();
            }
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|one| replace_texts(one, folders)),
        Value::Table(table) => table
            .iter_mut()
            .for_each(|(_, one)| replace_texts(one, folders)),
        _ => {}
    }
}

/// Where a file comes from.
fn source(file: &HubFile, places: &Places) -> Table {
    let mut source = Table::new();
    set(&mut source, "path", path_text(&places.weight_path(file)));
    set(&mut source, "url", file.url.as_str());
    if let Some(bytes) = file.bytes {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        set(&mut source, "bytes", bytes);
    }
    if let Some(sha256) = &file.sha256 {
        set(&mut source, "sha256", sha256.as_str());
    }
    source
}

/// Gives the first model the name, and those that extend its identifier (`NAME-edit`) the same beginning.
fn set_models(card: &mut Table, choice: &Choice) {
    let name = &choice.entry.name;
    let models = card.get_mut("models").and_then(Value::as_array_mut);
    let models = models.into_iter().flatten().filter_map(Value::as_table_mut);
    let mut first = None;
    for model in models {
        let id = model.get("id").and_then(Value::as_str).unwrap_or_default();
        let first = first.get_or_insert_with(|| id.to_owned());
        let suffix = id.strip_prefix(first.as_str()).unwrap_or_default();
        let id = format!("{name}{suffix}");
        set(model, "id", id);
        set(model, "engine", name.as_str());
        if !choice.resolutions.is_empty() {
            set(model, "resolutions", choice.resolutions.to_vec());
        }
    }
}

fn set(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.insert(key.to_owned(), value.into());
}

fn engine_table_mut(card: &mut Table) -> Option<&mut Table> {
    let engines = card.get_mut("engines")?.as_array_mut()?;
    engines.first_mut()?.as_table_mut()
}

fn subtable<'t>(table: &'t mut Table, key: &str) -> Option<&'t mut Table> {
    table.get_mut(key)?.as_table_mut()
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
