//! Loads the settings: defaults, overridden by the file, by variables, then by flags. Settings that
//! an earlier version had are ignored; a process that opens no engines leaves out those that it
//! cannot read.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::models_folder::{self, ModelFile};
use super::{Config, DEFAULT_FILE, EngineSettings, overlay};
use crate::address::OptionalAddress;
use crate::cli::{HomeArgs, ServeArgs, WorkerArgs};
use crate::failure::Failure;
use crate::home_path;

/// An engine that this process cannot read.
#[derive(Clone, Debug)]
pub(crate) struct EngineSetAside {
    pub(crate) reason: String,
    pub(crate) table: Value,
}

/// The variable for `--accept-loss`.
const ACCEPT_LOSS: &str = "KINORA_ACCEPT_LOSS";

impl Config {
    /// Reads file and variables, and applies the flags that every command has.
    pub(crate) fn load(home: &HomeArgs) -> Result<Self, Failure> {
        let config = Self::load_from(home, &variables())?;
        config.check()?;
        Ok(config)
    }

    /// Like [`Self::load`], with `file` in `models.d` instead of one at its path.
    pub(crate) fn load_with(home: &HomeArgs, file: &ModelFile) -> Result<Self, Failure> {
        let variables = variables();
        let path = configuration_path(home, &variables);
        let data = home.data.as_deref();
        let config = Self::read_layers(path.as_deref(), &variables, data, Some(file))?;
        config.check()?;
        Ok(config)
    }

    /// Reads file and variables, and applies the flags of `kinora serve` and `kinora doctor`.
    pub(crate) fn for_serving(args: &ServeArgs) -> Result<Self, Failure> {
        Self::for_serving_under(args, &variables())
    }

    /// Like [`Self::for_serving`], with these variables instead of the process's own.
    pub(crate) fn for_serving_under(
        args: &ServeArgs,
        variables: &[(String, String)],
    ) -> Result<Self, Failure> {
        let mut variables = variables.to_vec();
        if args.no_worker {
            // Flags override variables; the last entry wins.
            variables.push(("KINORA_WORKER_ENABLED".to_owned(), "false".to_owned()));
        }
        let mut config = Self::load_from(&args.home, &variables)?;
        if let Some(listen) = &args.listen {
            config.listen.clone_from(listen);
        }
        if let Some(base_url) = &args.base_url {
            config.base_url.clone_from(base_url);
        }
        if let Some(format) = args.log_format {
            config.log.format = format;
        }
        config.accept_loss = args.accept_loss || loss_accepted(&variables)?;
        config.opens_browser = args.open;
        config.check()?;
        Ok(config)
    }

    /// Reads file and variables, and applies the flags of `kinora worker`.
    pub(crate) fn for_working(args: &WorkerArgs) -> Result<Self, Failure> {
        let mut config = Self::load_from(&args.home, &variables())?;
        if let Some(listen) = &args.health_listen {
            config.worker.health_listen = OptionalAddress(Some(listen.clone()));
        }
        if let Some(format) = args.log_format {
            config.log.format = format;
        }
        // A worker without work is a mistake: it would run, answer health checks, and take no task.
        if !config.worker.enabled {
            return Err(Failure::new(
                "The setting worker.enabled is false, so `kinora worker` has nothing to do.",
            ));
        }
        config.check()?;
        Ok(config)
    }

    /// Logs the settings of earlier versions and the variables of Kubernetes that were ignored, and the notes.
    pub(crate) fn log_ignored(&self) {
        for setting in &self.removed {
            tracing::warn!(
                setting,
                "this setting was removed and has no effect; delete it"
            );
        }
        for note in &self.notes {
            tracing::warn!("{note}");
        }
        if !self.service_links.is_empty() {
            let variables = self.service_links.join(" ");
            tracing::info!(
                variables,
                "ignored: service links of Kubernetes, and no settings"
            );
        }
    }

    fn load_from(home: &HomeArgs, variables: &[(String, String)]) -> Result<Self, Failure> {
        let path = configuration_path(home, variables);
        Self::read_layers(path.as_deref(), variables, home.data.as_deref(), None)
    }

    /// Returns the built-in defaults.
    #[cfg(test)]
    pub(crate) fn defaults() -> Self {
        Self::read(None, &[]).unwrap()
    }

    /// Reads the defaults, overridden by the file, then by the variables; with the models of the
    /// data folder.
    #[cfg(test)]
    pub(crate) fn read(
        path: Option<&Path>,
        variables: &[(String, String)],
    ) -> Result<Self, Failure> {
        Self::read_layers(path, variables, None, None)
    }

    /// Reads the defaults, overridden by the file, the variables and the flag `data`; with the
    /// models of that data folder, among them `pending`.
    fn read_layers(
        path: Option<&Path>,
        variables: &[(String, String)],
        data: Option<&Path>,
        pending: Option<&ModelFile>,
    ) -> Result<Self, Failure> {
        // The defaults are parsed at each start, and not written down a second time in code: the
        // file that `kinora config` prints is the only place that has them, so the two cannot
        // differ.
        let mut settings = overlay::parse(DEFAULT_FILE, "the built-in defaults")?;
        if let Some(path) = path {
            let shown = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::because(format!("{shown} cannot be read"), error))?;
            overlay::merge(&mut settings, overlay::parse(&text, &shown)?);
        }
        // Before the typed configuration is made, which refuses unknown keys: a setting that was
        // valid in the last version must not stop the start after an upgrade.
        let mut removed = remove_obsolete(&mut settings);
        let (ignored, variables): (Vec<_>, Vec<_>) = variables
            .iter()
            .cloned()
            .partition(|(name, _)| is_obsolete_variable(name));
        removed.extend(ignored.into_iter().map(|(name, _)| name));
        // Variables after the file, so that a container image can have a file and each deployment
        // its own values.
        let service_links = overlay::apply_variables(&mut settings, &variables)?;
        let data = match data {
            Some(data) => data.to_owned(),
            None => home_path::expand_home(text_of(&settings, "data"))?,
        };
        let mut added = models_folder::read(&data)?;
        if let Some(file) = pending {
            added.retain(|one| one.path != file.path);
            added.push(file.clone());
        }
        let notes = models_folder::append(&mut settings, &added)?;
        let mut settings = Value::Table(settings);
        // After the variables and the folder, since their paths may begin with `~/` as well.
        home_path::expand_settings(&mut settings)?;
        let engines_set_aside = set_aside_engines(&mut settings);
        let config: Self = settings
            .try_into()
            .map_err(|error| Failure::because("The configuration is invalid", error))?;
        Ok(Self {
            data,
            engines_set_aside,
            notes,
            removed,
            service_links,
            #[cfg(feature = "test-faults")]
            test: crate::faults::TestOptions::from_variables(&variables),
            ..config
        })
    }
}

/// Whether a variable accepts the loss of missing changes.
fn loss_accepted(variables: &[(String, String)]) -> Result<bool, Failure> {
    let said = variables.iter().find(|(name, _)| name == ACCEPT_LOSS);
    match said.map(|(_, text)| text.as_str()) {
        None | Some("") => Ok(false),
        Some(text) => overlay::parse_boolean(text).ok_or_else(|| {
            Failure::new(format!("The variable {ACCEPT_LOSS} must be true or false."))
        }),
    }
}

/// The configuration file that a flag or a variable names.
fn configuration_path(home: &HomeArgs, variables: &[(String, String)]) -> Option<PathBuf> {
    let named = variables
        .iter()
        .find(|(name, text)| name == "KINORA_CONFIG" && !text.is_empty());
    let flag = home.config.clone();
    flag.or_else(|| named.map(|(_, path)| path.into()))
}

fn variables() -> Vec<(String, String)> {
    // Unit tests must not depend on the variables of whoever runs them.
    if cfg!(test) {
        return Vec::new();
    }
    std::env::vars().collect()
}

/// Removes from `settings` the engines that this program cannot read, if it runs none, and returns them.
fn set_aside_engines(settings: &mut Value) -> Vec<EngineSetAside> {
    if settings
        .get("worker")
        .and_then(|worker| worker.get("enabled").and_then(Value::as_bool))
        != Some(false)
    {
        return Vec::new();
    }
    // Works on the raw table: the typed configuration cannot be made with an engine that does not
    // parse.
    let Some(Value::Array(engines)) = settings.get_mut("engines") else {
        return Vec::new();
    };
    let mut aside = Vec::new();
    engines.retain(|engine| match read_engine(engine) {
        Ok(()) => true,
        Err(failure) => {
            aside.push(EngineSetAside {
                reason: failure.to_string(),
                table: engine.clone(),
            });
            false
        }
    });
    aside
}

fn read_engine(engine: &Value) -> Result<(), Failure> {
    let table = engine
        .as_table()
        .ok_or_else(|| Failure::new("An engine must be a table."))?;
    EngineSettings::try_from(table.clone())?.check()
}

const REMOVED: [(&str, &str); 14] = [
    ("http", "first_byte_timeout_seconds"),
    ("http", "header_timeout_seconds"),
    ("http", "idle_timeout_seconds"),
    ("http", "write_timeout_seconds"),
    ("media", "encoder_threads"),
    ("references", "host_connections_max"),
    ("results", "tombstone_days"),
    ("store", "poll_age_ms_max"),
    ("storyboard", "threads"),
    ("weights", "retries_max"),
    ("weights", "stall_seconds"),
    ("worker", "settled_after_seconds"),
    ("worker", "start_pause_seconds_max"),
    ("worker", "sweep_seconds"),
];

/// Removes settings of earlier versions from a file, and returns their names.
fn remove_obsolete(settings: &mut Table) -> Vec<String> {
    let mut names = Vec::new();
    for (section, key) in REMOVED {
        let table = settings.get_mut(section).and_then(Value::as_table_mut);
        if table.and_then(|table| table.remove(key)).is_some() {
            names.push(format!("{section}.{key}"));
        }
    }
    let engines = settings.get_mut("engines").and_then(Value::as_array_mut);
    let engines = engines.into_iter().flatten();
    for engine in engines.filter_map(Value::as_table_mut) {
        let name = text_of(engine, "name").to_owned();
        if text_of(engine, "kind") == "storyboard" && engine.remove("threads").is_some() {
            names.push(format!("threads of the engine {name}"));
        }
    }
    names
}

fn text_of<'t>(table: &'t Table, key: &str) -> &'t str {
    table.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a variable sets a setting of an earlier version.
fn is_obsolete_variable(name: &str) -> bool {
    REMOVED
        .iter()
        .any(|(section, key)| name == format!("KINORA_{section}_{key}").to_ascii_uppercase())
}
