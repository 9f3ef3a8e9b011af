//! The configuration: one commented file with the built-in defaults, overridden by variables, then
//! by flags. An unknown key is an error.

mod devices;
mod engines;
mod load;
pub(crate) mod models_folder;
mod money;
mod overlay;
mod policy;
mod secret;
mod storage;
mod traces;
mod weights;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use kinora_contract::CardRecord;
use kinora_engine::EngineKind;
use kinora_engine_storyboard::{StoryboardKind, not_in_watermark};
use serde::Deserialize;

use crate::address::{ListenAddress, OptionalAddress, check_base_url};
use crate::failure::Failure;
use crate::logging::LogFormat;
pub(crate) use devices::DeviceSettings;
pub(crate) use engines::{DeviceShare, EngineFile, EngineSettings, HostSettings};
pub(crate) use load::EngineSetAside;
pub(crate) use money::MoneySettings;
pub(crate) use policy::PolicySettings;
pub(crate) use storage::{ProjectBytes, ResultDelivery, S3Settings};
pub(crate) use traces::TraceSettings;
pub(crate) use weights::WeightSettings;

/// The default file, the only place that defines defaults.
pub(crate) const DEFAULT_FILE: &str = include_str!("../../../config.default.toml");

/// Minimum of `http.buffered_megabytes_max`: a client's quarter must hold a list and a body.
const BUFFERED_MEGABYTES_MIN: u32 = 16;

/// Maximum length of a mark: two lines of the narrowest frame.
const MARK_CHARS_MAX: usize = 40;

/// All settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) data: PathBuf,
    pub(crate) listen: ListenAddress,
    pub(crate) base_url: String,
    pub(crate) log: LogSettings,
    pub(crate) store: StoreSettings,
    pub(crate) results: ResultSettings,
    pub(crate) queue: QueueSettings,
    pub(crate) quota: QuotaSettings,
    pub(crate) money: MoneySettings,
    pub(crate) http: HttpSettings,
    pub(crate) studio: StudioSettings,
    pub(crate) worker: WorkerSettings,
    policy: PolicySettings,
    pub(crate) references: ReferenceSettings,
    pub(crate) files: FileSettings,
    pub(crate) media: MediaSettings,
    pub(crate) metrics: MetricsSettings,
    traces: TraceSettings,
    storyboard: StoryboardKind,
    pub(crate) weights: WeightSettings,
    #[serde(default)]
    pub(crate) devices: Vec<DeviceSettings>,
    #[serde(default)]
    pub(crate) engines: Vec<EngineSettings>,
    pub(crate) models: Vec<CardRecord>,
    /// Engines of the file that are missing in `engines`, for a process that opens none.
    #[serde(skip)]
    pub(crate) engines_set_aside: Vec<EngineSetAside>,
    /// What an operator should know of models of the data folder.
    #[serde(skip)]
    pub(crate) notes: Vec<String>,
    /// Settings of earlier versions that the file or a variable sets; ignored.
    #[serde(skip)]
    pub(crate) removed: Vec<String>,
    /// Variables of Kubernetes that begin as ours do; ignored.
    #[serde(skip)]
    service_links: Vec<String>,
    /// Not a setting, since it applies to one start only.
    #[serde(skip)]
    pub(crate) accept_loss: bool,
    /// Whether this start opens the page in a browser.
    #[serde(skip)]
    pub(crate) opens_browser: bool,
    #[cfg(feature = "test-faults")]
    #[serde(skip)]
    pub(crate) test: crate::faults::TestOptions,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogSettings {
    pub(crate) format: LogFormat,
    pub(crate) level: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreSettings {
    pub(crate) url: String,
    pub(crate) listen_url: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResultSettings {
    pub(crate) url: String,
    delivery: ResultDelivery,
    pub(crate) retention_hours: u32,
    pub(crate) failed_retention_hours: u32,
    pub(crate) signing_key_file: PathBuf,
    pub(crate) sign_command: Vec<String>,
    pub(crate) sign_timeout_seconds: u32,
    s3: S3Settings,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueSettings {
    pub(crate) waiting_max: u32,
    pub(crate) project_unfinished_max: u32,
    pub(crate) waiting_hours_max: u32,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuotaSettings {
    pub(crate) project_tasks_max: u32,
    project_bytes_max: ProjectBytes,
    pub(crate) bytes_max: u64,
    pub(crate) free_bytes_min: u64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpSettings {
    pub(crate) connections_max: u32,
    pub(crate) connections_per_address_max: u32,
    pub(crate) buffered_megabytes_max: u32,
    pub(crate) request_timeout_seconds: u32,
    pub(crate) linger_seconds: u32,
    pub(crate) drain_seconds: u32,
    pub(crate) requests_per_minute: u32,
    pub(crate) trusted_proxies: Vec<String>,
    pub(crate) cors_origins: Vec<String>,
    pub(crate) tls_certificate: PathBuf,
    pub(crate) tls_key: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkerSettings {
    pub(crate) enabled: bool,
    pub(crate) slots: u32,
    pub(crate) project_slots_max: u32,
    pub(crate) short_slot_seconds: u32,
    pub(crate) lease_seconds: u32,
    pub(crate) attempts_max: u32,
    pub(crate) drain_seconds: u32,
    pub(crate) ready_when_warm: bool,
    pub(crate) health_listen: OptionalAddress,
    pub(crate) scratch: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReferenceSettings {
    pub(crate) allow_networks: Vec<String>,
    pub(crate) deny_networks: Vec<String>,
    pub(crate) project_bytes_per_hour: u64,
}

/// `[files]`: uploaded files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileSettings {
    pub(crate) form_uploads: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MediaSettings {
    pub(crate) qp: u8,
    pub(crate) mark: String,
}

/// `[studio]`: the web page.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudioSettings {
    pub(crate) enabled: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricsSettings {
    pub(crate) listen: OptionalAddress,
}

impl HttpSettings {
    /// Whether HTTPS is served.
    pub(crate) fn is_tls(&self) -> bool {
        !self.tls_certificate.as_os_str().is_empty()
    }
}

impl Config {
    /// Validates what types cannot express.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let (worker, queue, results, http) = (&self.worker, &self.queue, &self.results, &self.http);
        let positive = [
            (worker.lease_seconds, "worker.lease_seconds"),
            (worker.attempts_max, "worker.attempts_max"),
            (queue.waiting_max, "queue.waiting_max"),
            (queue.project_unfinished_max, "queue.project_unfinished_max"),
            (results.retention_hours, "results.retention_hours"),
            (
                results.failed_retention_hours,
                "results.failed_retention_hours",
            ),
            (self.quota.project_tasks_max, "quota.project_tasks_max"),
            (http.connections_max, "http.connections_max"),
            (
                http.connections_per_address_max,
                "http.connections_per_address_max",
            ),
            (http.request_timeout_seconds, "http.request_timeout_seconds"),
        ];
        if let Some((_, key)) = positive.into_iter().find(|(value, _)| *value == 0) {
            return Err(Failure::new(format!(
                "The setting {key} must be at least 1."
            )));
        }
        if self.http.buffered_megabytes_max < BUFFERED_MEGABYTES_MIN {
            return Err(Failure::new(format!(
                "The setting http.buffered_megabytes_max must be at least {BUFFERED_MEGABYTES_MIN}."
            )));
        }
        self.storyboard
            .check(false)
            .map_err(|error| Failure::because("The section [storyboard] is invalid", error))?;
        let mut names = BTreeSet::new();
        for engine in &self.engines {
            engine.check()?;
            if !names.insert(&engine.name) {
                return Err(Failure::new(format!(
                    "Two engines have the name '{}'.",
                    engine.name
                )));
            }
        }
        self.check_presets()?;
        // H.264 quantises from 0 to 51. Below 10 files only grow: the loss is invisible already.
        if !(10..=51).contains(&self.media.qp) {
            return Err(Failure::new("The setting media.qp must be from 10 to 51."));
        }
        self.check_mark()?;
        // `is_tls` looks at the certificate alone, so equality means that one is set and the other
        // is not.
        if self.http.is_tls() == self.http.tls_key.as_os_str().is_empty() {
            return Err(Failure::new(
                "Set both http.tls_certificate and http.tls_key, or neither.",
            ));
        }
        self.money.check()?;
        self.check_devices()?;
        self.check_results()?;
        self.check_policy()?;
        self.check_weights()?;
        crate::logging::targets(&self.log.level)?;
        check_base_url(&self.base_url)
    }

    /// Refuses settings of models whose engines would ignore them. An engine that is unknown here serves its models
    /// elsewhere, and is checked there.
    fn check_presets(&self) -> Result<(), Failure> {
        for model in &self.models {
            let (Some(preset), Ok(engine)) = (model.preset(), self.engine(&model.engine)) else {
                continue;
            };
            engine.settings.check_preset(preset).map_err(|error| {
                let (kind, engine) = (engine.definition.kind.name, &engine.name);
                Failure::new(format!(
                    "The model '{}': settings: its engine '{engine}' is of the kind '{kind}': {error}.",
                    model.id
                ))
            })?;
        }
        Ok(())
    }

    fn check_mark(&self) -> Result<(), Failure> {
        let mark = &self.media.mark;
        if mark.chars().count() > MARK_CHARS_MAX || mark.contains(char::is_control) {
            return Err(Failure::new(format!(
                "The setting media.mark must have at most {MARK_CHARS_MAX} characters and no line breaks."
            )));
        }
        // Refused at the start: drawn without these characters, the operator's mark would be wrong
        // on every video, and nobody might look.
        let lacking: String = not_in_watermark(mark).into_iter().collect();
        if !lacking.is_empty() {
            return Err(Failure::new(format!(
                "The setting media.mark has characters that the built-in fonts lack: {lacking}"
            )));
        }
        Ok(())
    }

    /// A fixed limit. A test may change it by the variable `name`, since it cannot wait for hours ([`crate::faults`]).
    #[cfg_attr(
        not(feature = "test-faults"),
        expect(unused_variables, clippy::unused_self, reason = "for tests alone")
    )]
    pub(crate) fn limit(&self, name: &str, value: u64) -> u64 {
        #[cfg(feature = "test-faults")]
        if let Some(value) = self.test.limit(name) {
            return value;
        }
        value
    }

    /// Like [`Self::limit`], in seconds.
    pub(crate) fn limit_seconds(&self, name: &str, seconds: u64) -> Duration {
        Duration::from_secs(self.limit(name, seconds))
    }

    /// The configured model with this identifier or alias.
    pub(crate) fn model(&self, name: &str) -> Result<&CardRecord, Failure> {
        let mut models = self.models.iter();
        let found = models.find(|one| one.id == name || one.aliases.iter().any(|own| own == name));
        found.ok_or_else(|| {
            let known: Vec<&str> = self.models.iter().map(|one| one.id.as_str()).collect();
            Failure::new(format!(
                "There is no model '{}'; the configuration has: {}. Name another configuration with --config.",
                name.escape_debug(),
                known.join(", ")
            ))
        })
    }

    /// The identifier of the configured model with this identifier or alias.
    pub(crate) fn model_id(&self, name: &str) -> Result<String, Failure> {
        Ok(self.model(name)?.id.clone())
    }

    /// The engine with this name, configured or built in.
    pub(crate) fn engine(&self, name: &str) -> Result<EngineSettings, Failure> {
        if name == engines::BUILT_IN {
            return EngineSettings::built_in(&self.storyboard);
        }
        let found = self.engines.iter().find(|engine| engine.name == name);
        found
            .cloned()
            .ok_or_else(|| Failure::new(format!("There is no engine '{name}'.")))
    }
}

#[cfg(test)]
mod tests;
