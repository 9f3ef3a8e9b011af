//! Loads the settings: defaults, overridden by the file, by variables, then by flags.

use std::path::Path;

use super::{Config, DEFAULT_FILE, OptionalAddress, lenient, removed};
use crate::cli::{HomeArgs, ServeArgs, WorkerArgs};
use crate::failure::Failure;
use crate::{overlay, tilde};

/// The variable for `--accept-loss`.
const ACCEPT_LOSS: &str = "KINORA_ACCEPT_LOSS";

impl Config {
    /// Reads file and variables, and applies the flags that every command has.
    pub(crate) fn load(home: &HomeArgs) -> Result<Self, Failure> {
        let config = Self::placed(home, &variables())?;
        config.check()?;
        Ok(config)
    }

    /// The same with all flags of `kinora serve`, which `kinora doctor` takes as well.
    pub(crate) fn for_serving(args: &ServeArgs) -> Result<Self, Failure> {
        Self::for_serving_under(args, &variables())
    }

    /// The same with these variables instead of the process's own.
    pub(crate) fn for_serving_under(
        args: &ServeArgs,
        variables: &[(String, String)],
    ) -> Result<Self, Failure> {
        let mut variables = variables.to_vec();
        if args.no_worker {
            // Flags override variables; the last entry wins.
            variables.push(("KINORA_WORKER_ENABLED".to_owned(), "false".to_owned()));
        }
        let mut config = Self::placed(&args.home, &variables)?;
        if let Some(listen) = &args.listen {
            config.listen.clone_from(listen);
        }
        if let Some(base_url) = &args.base_url {
            config.base_url.clone_from(base_url);
        }
        if let Some(format) = args.log_format {
            config.log.format = format;
        }
        config.accept_loss = args.accept_loss || accepts_loss(&variables)?;
        config.check()?;
        Ok(config)
    }

    /// File and variables, with the flags of `kinora worker`.
    pub(crate) fn for_working(args: &WorkerArgs) -> Result<Self, Failure> {
        let mut config = Self::placed(&args.home, &variables())?;
        if let Some(listen) = &args.health_listen {
            config.worker.health_listen = OptionalAddress(Some(listen.clone()));
        }
        if let Some(format) = args.log_format {
            config.log.format = format;
        }
        if !config.worker.enabled {
            return Err(Failure::new(
                "The setting worker.enabled is false, so `kinora worker` has nothing to do.",
            ));
        }
        config.check()?;
        Ok(config)
    }

    /// Logs what was ignored: settings of earlier versions, and variables of Kubernetes.
    pub(crate) fn log_ignored(&self) {
        for setting in &self.removed {
            tracing::warn!(
                setting,
                "this setting was removed and has no effect; delete it"
            );
        }
        if !self.service_links.is_empty() {
            let variables = self.service_links.join(" ");
            tracing::info!(
                variables,
                "ignored: service links of Kubernetes, and no settings"
            );
        }
    }

    fn placed(home: &HomeArgs, variables: &[(String, String)]) -> Result<Self, Failure> {
        let is_named =
            |(name, text): &&(String, String)| name == "KINORA_CONFIG" && !text.is_empty();
        let named = variables.iter().find(is_named);
        let path = home
            .config
            .clone()
            .or_else(|| named.map(|(_, path)| path.into()));
        let mut config = Self::read(path.as_deref(), variables)?;
        if let Some(data) = &home.data {
            config.data.clone_from(data);
        }
        Ok(config)
    }

    /// Only the built-in defaults.
    #[cfg(test)]
    pub(crate) fn defaults() -> Self {
        Self::read(None, &[]).unwrap()
    }

    /// Defaults, overridden by the file, then by the variables.
    pub(crate) fn read(
        path: Option<&Path>,
        variables: &[(String, String)],
    ) -> Result<Self, Failure> {
        let mut settings = overlay::parse(DEFAULT_FILE, "the built-in defaults")?;
        if let Some(path) = path {
            let shown = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::because(format!("{shown} cannot be read"), error))?;
            overlay::merge(&mut settings, overlay::parse(&text, &shown)?);
        }
        let mut removed = removed::take_settings(&mut settings);
        let (ignored, variables): (Vec<_>, Vec<_>) = variables
            .iter()
            .cloned()
            .partition(|(name, _)| removed::is_variable(name));
        removed.extend(ignored.into_iter().map(|(name, _)| name));
        let service_links = overlay::apply_variables(&mut settings, &variables)?;
        let engines_set_aside = lenient::set_aside_engines(&mut settings);
        let mut settings = toml::Value::Table(settings);
        tilde::expand_settings(&mut settings)?;
        let config: Self = settings
            .try_into()
            .map_err(|error| Failure::because("The configuration is invalid", error))?;
        Ok(Self {
            engines_set_aside,
            removed,
            service_links,
            #[cfg(feature = "test-faults")]
            test: crate::faults::TestOptions::from_variables(&variables),
            ..config
        })
    }
}

/// Whether a variable accepts the loss of missing changes.
fn accepts_loss(variables: &[(String, String)]) -> Result<bool, Failure> {
    let said = variables.iter().find(|(name, _)| name == ACCEPT_LOSS);
    match said.map(|(_, text)| text.as_str()) {
        None | Some("") => Ok(false),
        Some(text) => overlay::boolean(text).ok_or_else(|| {
            Failure::new(format!("The variable {ACCEPT_LOSS} must be true or false."))
        }),
    }
}

fn variables() -> Vec<(String, String)> {
    std::env::vars().collect()
}
