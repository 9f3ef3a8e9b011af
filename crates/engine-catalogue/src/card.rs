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
    if let Some(engine) = first_table(&mut card, "engines") {
        engine.insert("name".to_owned(), text(name));
        match choice.recipe {
            ModelRecipe::Diffusers(recipe) => {
                by_diffusers(engine, choice, files, places, environment);
                if let Some(memory) = subtable(engine, "memory") {
                    let step = Value::Float(recipe.step_gigabytes);
                    memory.insert("step_gigabytes".to_owned(), step);
                }
            }
            ModelRecipe::Sdcpp(_) => by_sdcpp(engine, choice, files, places, environment),
        }
        let files = files.iter().map(|file| source(file, places));
        engine.insert("files".to_owned(), Value::Array(files.collect()));
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

/// The command, the device, the folders of repositories, and what waits in main memory.
fn by_diffusers(
    engine: &mut Table,
    choice: &Choice,
    files: &[HubFile],
    places: &Places,
    environment: &PreparedEnvironment,
) {
    let command = environment.command.iter().map(|part| text(part));
    engine.insert("command".to_owned(), Value::Array(command.collect()));
    set_variables(engine, &environment.environment);
    if let Some(gpu) = bound_gpu(choice) {
        // The UUID stays when GPUs are added.
        engine.insert("devices".to_owned(), Value::Array(vec![text(&gpu.uuid)]));
    }
    let Some(settings) = subtable(engine, "settings") else {
        return;
    };
    let folders = files
        .iter()
        .map(|file| (file.repository.as_str(), places.repository_path(file)));
    replace_texts(settings, &folders.collect());
    settings.remove("offload_options");
    let offload = match choice.placement.offload {
        OffloadMode::None => "none",
        OffloadMode::Model => "model",
        OffloadMode::Layers => {
            let leaf = Table::from_iter([("offload_type".to_owned(), text("leaf_level"))]);
            settings.insert("offload_options".to_owned(), Value::Table(leaf));
            "group"
        }
    };
    settings.insert("offload".to_owned(), text(offload));
    // Not every pipeline has tiles: only those that need them get the setting.
    if choice.placement.tiles {
        settings.insert("vae_tiling".to_owned(), Value::Boolean(true));
    }
}

/// The server, the device, the files, and what waits in main memory.
fn by_sdcpp(
    engine: &mut Table,
    choice: &Choice,
    files: &[HubFile],
    places: &Places,
    environment: &PreparedEnvironment,
) {
    engine.insert("kind".to_owned(), text("sdcpp"));
    if let Some(server) = environment.command.first() {
        engine.insert("server".to_owned(), text(server));
    }
    let Some(model) = subtable(engine, "model") else {
        return;
    };
    for wanted in model_files(choice) {
        let mut found = files.iter();
        let found = found
            .find(|file| file.repository == wanted.repository && file.path == wanted.path)
            .map(|file| places.weight_path(file));
        model.extend(found.map(|path| (wanted.key, path_text(&path))));
    }
    for (key, is_on) in [
        (
            "offload_to_cpu",
            choice.placement.offload == OffloadMode::Model,
        ),
        ("vae_tiling", choice.placement.tiles),
    ] {
        model.insert(key.to_owned(), Value::Boolean(is_on));
    }
    // The server counts in the order of nvidia-smi, which Kinora sets for its processes. Of Vulkan's order nothing is known.
    if let Some(gpu) = bound_gpu(choice).filter(|_| is_bound(choice)) {
        model.insert("backend".to_owned(), text(&format!("cuda{}", gpu.index)));
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
    let megabytes = |figure: f64| Value::Integer((figure.floor() as i64).max(1));
    let share = Table::from_iter([
        ("device".to_owned(), text(name)),
        ("memory_megabytes".to_owned(), megabytes(needed)),
    ]);
    if let Some(engine) = first_table(card, "engines") {
        engine.extend(share);
    }
    let device = Table::from_iter([
        ("name".to_owned(), text(name)),
        ("memory_megabytes".to_owned(), megabytes(usable)),
    ]);
    let devices = Value::Array(vec![Value::Table(device)]);
    card.insert("devices".to_owned(), devices);
}

/// On a processor a step may take hours, and shows nothing before it ends.
fn set_patience(card: &mut Table, choice: &Choice) {
    let engine = first_table(card, "engines").filter(|_| choice.device.is_none());
    if let Some(host) = engine.and_then(|engine| subtable(engine, "host")) {
        let seconds = Value::Integer(CPU_SILENCE_SECONDS);
        host.insert("silence_seconds".to_owned(), seconds);
    }
}

fn set_variables(engine: &mut Table, variables: &BTreeMap<String, String>) {
    let variables = variables
        .iter()
        .map(|(name, value)| (name.clone(), text(value)));
    let variables: Table = variables.collect();
    if !variables.is_empty() {
        engine.insert("environment".to_owned(), Value::Table(variables));
    }
}

/// Replaces each text that is a repository by its folder, at any depth: a pipeline, or a LoRA.
fn replace_texts(table: &mut Table, folders: &BTreeMap<&str, PathBuf>) {
    for (_, value) in table.iter_mut() {
        replace_text(value, folders);
    }
}

fn replace_text(value: &mut Value, folders: &BTreeMap<&str, PathBuf>) {
    match value {
        Value::String(id) => {
            if let Some(folder) = folders.get(id.as_str()) {
                *value = path_text(folder);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|one| replace_text(one, folders)),
        Value::Table(table) => replace_texts(table, folders),
        _ => {}
    }
}

/// Where a file comes from.
fn source(file: &HubFile, places: &Places) -> Value {
    let mut source = Table::new();
    source.insert("path".to_owned(), path_text(&places.weight_path(file)));
    source.insert("url".to_owned(), text(file.url.as_str()));
    let bytes = file.bytes.and_then(|bytes| i64::try_from(bytes).ok());
    source.extend(bytes.map(|bytes| ("bytes".to_owned(), Value::Integer(bytes))));
    let sha256 = file.sha256.as_deref();
    source.extend(sha256.map(|sha256| ("sha256".to_owned(), text(sha256))));
    Value::Table(source)
}

/// Gives the first model the name, and those that extend its identifier (`NAME-edit`) the same beginning.
fn set_models(card: &mut Table, choice: &Choice) {
    let name = &choice.entry.name;
    let resolutions: Vec<Value> = choice.resolutions.iter().map(|one| text(one)).collect();
    let models = card.get_mut("models").and_then(Value::as_array_mut);
    let models = models.into_iter().flatten().filter_map(Value::as_table_mut);
    let mut first = None;
    for model in models {
        let id = model
            .get("id")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let first: &String = first.get_or_insert_with(|| id.clone());
        let suffix = id.strip_prefix(first.as_str()).unwrap_or_default();
        model.insert("id".to_owned(), text(&format!("{name}{suffix}")));
        model.insert("engine".to_owned(), text(name));
        if !resolutions.is_empty() {
            model.insert("resolutions".to_owned(), Value::Array(resolutions.clone()));
        }
    }
}

fn first_table<'t>(table: &'t mut Table, key: &str) -> Option<&'t mut Table> {
    table
        .get_mut(key)?
        .as_array_mut()?
        .first_mut()?
        .as_table_mut()
}

fn subtable<'t>(table: &'t mut Table, key: &str) -> Option<&'t mut Table> {
    table.get_mut(key)?.as_table_mut()
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn path_text(path: &Path) -> Value {
    Value::String(path.to_string_lossy().into_owned())
}
