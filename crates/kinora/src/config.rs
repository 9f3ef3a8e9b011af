//! The configuration: one commented file whose defaults are the built-in ones, variables over
//! it, flags over both. An unknown key is an error.

mod address;
mod engines;
mod lenient;
mod load;
mod places;
mod results;

use std::collections::BTreeSet;
use std::path::PathBuf;

use kinora_contract::CardRecord;
use kinora_engine::EngineKind;
use kinora_storyboard::StoryboardKind;
use serde::Deserialize;

use crate::cli::LogFormat;
use crate::failure::Failure;
pub(crate) use address::{ListenAddress, OptionalAddress, check_base_url};
pub(crate) use engines::{Engine, Host};
pub(crate) use results::{Delivery, S3};

/// The default file: the only place where defaults are written down.
pub(crate) const DEFAULT_FILE: &str = include_str!("../../../config.default.toml");

/// Of less, a client's quarter would hold hardly more than a list and a body.
const BUFFERED_MEGABYTES_MIN: u32 = 16;

/// All settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) data: PathBuf,
    pub(crate) listen: ListenAddress,
    pub(crate) base_url: String,
    pub(crate) log: Log,
    pub(crate) store: Store,
    pub(crate) results: Results,
    pub(crate) queue: Queue,
    pub(crate) quota: Quota,
    pub(crate) http: Http,
    pub(crate) worker: Worker,
    pub(crate) references: References,
    pub(crate) media: Media,
    pub(crate) storyboard: StoryboardKind,
    #[serde(default)]
    pub(crate) engines: Vec<Engine>,
    pub(crate) models: Vec<CardRecord>,
    /// Why some engines of the file are not in `engines`, in a process that opens none.
    #[serde(skip)]
    pub(crate) engines_set_aside: Vec<String>,
    /// Not a setting, since it is said once.
    #[serde(skip)]
    pub(crate) accept_loss: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) format: LogFormat,
    pub(crate) level: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Store {
    pub(crate) url: String,
    pub(crate) listen_url: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Results {
    pub(crate) url: String,
    pub(crate) delivery: Delivery,
    pub(crate) retention_hours: u32,
    pub(crate) tombstone_days: u32,
    pub(crate) signing_key_file: PathBuf,
    pub(crate) s3: S3,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Queue {
    pub(crate) waiting_max: u32,
    pub(crate) project_unfinished_max: u32,
    pub(crate) waiting_hours_max: u32,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Quota {
    pub(crate) project_tasks_max: u32,
    pub(crate) project_bytes_max: u64,
    pub(crate) bytes_max: u64,
    pub(crate) free_bytes_min: u64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Http {
    pub(crate) connections_max: u32,
    pub(crate) connections_per_address_max: u32,
    pub(crate) buffered_megabytes_max: u32,
    pub(crate) first_byte_timeout_seconds: u32,
    pub(crate) header_timeout_seconds: u32,
    pub(crate) request_timeout_seconds: u32,
    pub(crate) idle_timeout_seconds: u32,
    pub(crate) write_timeout_seconds: u32,
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
pub(crate) struct Worker {
    pub(crate) enabled: bool,
    pub(crate) slots: u32,
    pub(crate) project_slots_max: u32,
    pub(crate) lease_seconds: u32,
    pub(crate) sweep_seconds: u32,
    pub(crate) attempts_max: u32,
    pub(crate) start_pause_seconds_max: u32,
    pub(crate) settled_after_seconds: u32,
    pub(crate) drain_seconds: u32,
    pub(crate) health_listen: OptionalAddress,
    pub(crate) scratch: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct References {
    pub(crate) allow_networks: Vec<String>,
    pub(crate) deny_networks: Vec<String>,
    pub(crate) host_connections_max: u32,
    pub(crate) project_bytes_per_hour: u64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Media {
    pub(crate) qp: u8,
    pub(crate) encoder_threads: u32,
}

impl Http {
    /// Settings that must be at least 1.
    const fn positive(&self) -> [(&'static str, u32); 7] {
        [
            ("http.connections_max", self.connections_max),
            (
                "http.connections_per_address_max",
                self.connections_per_address_max,
            ),
            (
                "http.first_byte_timeout_seconds",
                self.first_byte_timeout_seconds,
            ),
            ("http.header_timeout_seconds", self.header_timeout_seconds),
            ("http.request_timeout_seconds", self.request_timeout_seconds),
            ("http.idle_timeout_seconds", self.idle_timeout_seconds),
            ("http.write_timeout_seconds", self.write_timeout_seconds),
        ]
    }

    /// Whether HTTPS is served.
    pub(crate) fn is_tls(&self) -> bool {
        !self.tls_certificate.as_os_str().is_empty()
    }
}

impl Config {
    /// Checks that types cannot express.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let positive = [
            ("worker.slots", self.worker.slots),
            ("worker.lease_seconds", self.worker.lease_seconds),
            ("worker.sweep_seconds", self.worker.sweep_seconds),
            ("worker.attempts_max", self.worker.attempts_max),
            ("queue.waiting_max", self.queue.waiting_max),
            (
                "queue.project_unfinished_max",
                self.queue.project_unfinished_max,
            ),
            ("results.retention_hours", self.results.retention_hours),
            ("quota.project_tasks_max", self.quota.project_tasks_max),
            (
                "references.host_connections_max",
                self.references.host_connections_max,
            ),
        ];
        let mut positive = positive.into_iter().chain(self.http.positive());
        if let Some((key, _)) = positive.find(|(_, value)| *value == 0) {
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
            .map_err(|error| Failure::because("The section [storyboard] is wrong", error))?;
        let mut names = BTreeSet::new();
        for engine in &self.engines {
            engine.check()?;
            if !names.insert(&engine.name) {
                return Err(Failure::new(format!(
                    "Two engines are called '{}'.",
                    engine.name
                )));
            }
        }
        if !(10..=51).contains(&self.media.qp) {
            return Err(Failure::new("The setting media.qp must be from 10 to 51."));
        }
        if self.http.is_tls() == self.http.tls_key.as_os_str().is_empty() {
            return Err(Failure::new(
                "The settings http.tls_certificate and http.tls_key need each other.",
            ));
        }
        self.check_results()?;
        crate::logging::targets(&self.log.level)?;
        check_base_url(&self.base_url)
    }

    /// The engine with this name, configured or built in.
    pub(crate) fn engine(&self, name: &str) -> Result<Engine, Failure> {
        if name == engines::BUILT_IN {
            return Engine::built_in(&self.storyboard);
        }
        let found = self.engines.iter().find(|engine| engine.name == name);
        found
            .cloned()
            .ok_or_else(|| Failure::new(format!("There is no engine '{name}'.")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{PlaceArgs, ServeArgs};

    fn read(file: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kinora.toml");
        std::fs::write(&path, file).unwrap();
        let variables: Vec<_> = variables
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        let config =
            Config::read(Some(&path), &variables).map_err(|failure| failure.to_string())?;
        config.check().map_err(|failure| failure.to_string())?;
        Ok(config)
    }

    #[test]
    fn the_default_file_is_complete_and_agrees_with_the_contract() {
        use kinora_contract::limits;
        let config = read("", &[]).unwrap();
        assert_eq!(config.worker.attempts_max, limits::ATTEMPTS_MAX);
        assert_eq!(
            u64::from(config.results.retention_hours),
            limits::RETENTION_HOURS
        );
        assert_eq!(
            u64::from(config.results.tombstone_days),
            limits::TOMBSTONE_DAYS
        );
        let cards: Vec<_> = kinora_contract::built_in_cards()
            .into_iter()
            .map(|card| card.id)
            .collect();
        let served: Vec<_> = config
            .models
            .iter()
            .map(|model| model.card.clone().unwrap_or_default())
            .collect();
        assert_eq!(served, cards);
        let is_as_built_in = |model: &CardRecord| model.card.as_ref() == Some(&model.id);
        assert!(config.models.iter().all(is_as_built_in));
    }

    #[test]
    fn variables_override_the_file_and_the_file_the_defaults() {
        let file = "listen = \"127.0.0.1:9000\"\n[worker]\nslots = 3";
        let config = read(file, &[("KINORA_WORKER_SLOTS", "7")]).unwrap();
        assert_eq!(config.listen, "127.0.0.1:9000".parse().unwrap());
        assert_eq!(config.worker.slots, 7);
        let built_in = StoryboardKind {
            system_fonts: true,
            ..StoryboardKind::default()
        };
        assert_eq!(config.storyboard, built_in);
        let told = [
            ("KINORA_STORYBOARD_MARK_TEXT", "Studio {seed}"),
            ("KINORA_STORYBOARD_CAPTION", "false"),
        ];
        let storyboard = read("[storyboard]\nmark = false", &told)
            .unwrap()
            .storyboard;
        assert_eq!(storyboard.mark_text, "Studio {seed}");
        assert!(!storyboard.caption && !storyboard.mark && storyboard.system_fonts);
        assert_eq!(config.worker.lease_seconds, 30);
    }

    #[test]
    fn flags_override_all_and_are_judged() {
        let mut args = ServeArgs {
            place: PlaceArgs::default(),
            listen: Some("localhost:8081".parse().unwrap()),
            base_url: Some("https://video.example.com".to_owned()),
            no_worker: false,
            log_format: Some(LogFormat::Text),
            accept_loss: false,
        };
        let config = Config::for_serving_under(&args, &[]).unwrap();
        assert_eq!(config.listen.to_string(), "localhost:8081");
        assert_eq!(config.base_url, "https://video.example.com");
        assert_eq!(config.log.format, LogFormat::Text);
        assert!(!config.accept_loss);
        let said = [("KINORA_ACCEPT_LOSS".to_owned(), "1".to_owned())];
        assert!(Config::for_serving_under(&args, &said).unwrap().accept_loss);
        let unclear = [("KINORA_ACCEPT_LOSS".to_owned(), "perhaps".to_owned())];
        assert!(Config::for_serving_under(&args, &unclear).is_err());
        args.accept_loss = true;
        assert!(Config::for_serving_under(&args, &[]).unwrap().accept_loss);
        args.base_url = Some("https://video.example.com/?a=b".to_owned());
        let error = Config::for_serving_under(&args, &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains("base_url"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (file, variables, named) in [
            ("lisen = \"127.0.0.1:1\"", &[][..], "lisen"),
            ("[worker]\nslotz = 3", &[], "slotz"),
            ("[worker]\nslots = 0", &[], "worker.slots"),
            ("[media]\nqp = 99", &[], "media.qp"),
            ("[storyboard]\nmark_text = \" \"", &[], "mark_text"),
            ("[storyboard]\ncaptions = false", &[], "captions"),
            ("base_url = \"example.com\"", &[], "base_url"),
            ("listen = \":8080\"", &[], "listen: ':8080' names no host"),
            ("[log]\nlevel = \"kinora_api=loud\"", &[], "log.level"),
            ("[results]\nurl = \"s3:bucket\"", &[], "s3://BUCKET/PREFIX"),
            ("[results]\nurl = \"ftp://host\"", &[], "results.url"),
            (
                "[results]\ndelivery = \"redirect\"",
                &[],
                "results.delivery",
            ),
            ("[results.s3]\nendpont = \"\"", &[], "endpont"),
            (
                "[http]\nidle_timeout_seconds = 0",
                &[],
                "http.idle_timeout_seconds",
            ),
            (
                "[http]\nbuffered_megabytes_max = 15",
                &[],
                "http.buffered_megabytes_max",
            ),
            ("[http]\ntls_key = \"key.pem\"", &[], "http.tls_certificate"),
            ("listen = ", &[], "kinora.toml"),
            (
                "[[engines]]\nname = \"studio\"\nkind = \"remote\"\ndialect = \"klingon\"\nbase_urls = []",
                &[],
                "klingon",
            ),
            (
                "[[engines]]\nname = \"studio\"\nkind = \"remote\"\ndialect = \"kinora\"\nbase_url = \"x\"",
                &[],
                "base_url",
            ),
            (
                "",
                &[("KINORA_WORKER_SLOTS", "many")],
                "KINORA_WORKER_SLOTS",
            ),
        ] {
            let error = read(file, variables).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
