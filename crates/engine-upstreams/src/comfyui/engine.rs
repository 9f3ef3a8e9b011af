//! A workflow as an engine of finished films, and the operator's settings of it, whose commented example is in
//! `config.default.toml`. It does not inspect the film.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::{Clock, FailureCode, VideoSpec, Warning, WarningCode};
use kinora_engine::places::Places;
use kinora_engine::{
    EngineDescription, EngineError, EngineKind, EngineOutput, FilmEngine, FilmJob, FilmKind,
    KindError, ServerReport, refuse_unsupported,
};
use serde::Deserialize;

use super::card::{WorkflowCard, WorkflowDescription};
use super::error::ComfyError;
use super::run::ComfyTicket;
use super::shared::{ComfyOptions, ComfyServers, DISK_THREADS, SecretText, headers};
use super::workflow::{WORKFLOW_BYTES_MAX, Workflow, WorkflowBindings};
use crate::servers::{
    KeySource, PatienceLimits, SettingsError, SystemTimer, base_url, chain, check_each_once,
    key_source,
};

/// An engine whose films a workflow makes.
#[derive(Debug)]
pub struct ComfyEngine {
    comfy: ComfyServers,
    description: EngineDescription,
}

impl ComfyEngine {
    /// An engine of this name that uses `comfy`.
    pub fn new(comfy: ComfyServers, name: &str) -> Self {
        let card = &comfy.0.card;
        let description = EngineDescription {
            name: name.to_owned(),
            version: card.describe().version.clone(),
            features: card.bindings().features(),
            is_trained: card.describe().is_trained,
            final_from_video: false,
        };
        Self { comfy, description }
    }
}

#[async_trait]
impl FilmEngine for ComfyEngine {
    fn describe(&self) -> &EngineDescription {
        &self.description
    }

    fn has_sound_switch(&self) -> bool {
        self.description.features.audio_output
    }

    fn warnings(&self, _spec: &VideoSpec) -> Vec<Warning> {
        if self.comfy.0.card.bindings().seed.is_empty() {
            vec![WarningCode::SeedIgnored.into()]
        } else {
            Vec::new()
        }
    }

    async fn film(&self, job: &FilmJob<'_>) -> Result<(), EngineError> {
        refuse_unsupported(self.description.features, job.spec)?;
        match self.comfy.make(job).await {
            Ok(bytes) => {
                tracing::debug!(bytes, "film received");
                Ok(())
            }
            Err(ComfyError::Cancelled) => Err(EngineError::Cancelled),
            Err(error) => Err(engine_error(&error)),
        }
    }

    fn places(&self) -> Option<&Arc<Places>> {
        Some(&self.comfy.0.places)
    }

    async fn call_off(&self, ticket: &str) -> Result<(), EngineError> {
        let Some(ticket) = ComfyTicket::read(ticket) else {
            return Ok(());
        };
        match self.comfy.call_off(&ticket).await {
            // If the server is no longer configured, there is nobody to call off.
            Ok(()) | Err(ComfyError::Forgotten(_)) => Ok(()),
            Err(error) => Err(engine_error(&error)),
        }
    }

    async fn unload(&self) {
        self.comfy.free().await;
    }

    async fn ask_servers(&self) -> Vec<ServerReport> {
        self.comfy.ask_all().await
    }
}

/// Whose failure it is: the job's, unless a node failed without a code, the film cannot be read, or
/// the server stopped answering.
fn engine_error(error: &ComfyError) -> EngineError {
    let (code, cause) = (error.code(), chain(error));
    match error {
        ComfyError::NoPlace(_) => EngineError::NoPlace(cause),
        ComfyError::Failed {
            code: FailureCode::GenerationFailed,
            ..
        }
        | ComfyError::Unread(_)
        | ComfyError::Silent { .. }
        | ComfyError::Forgotten(_) => EngineError::JobFailed { code, cause },
        _ => EngineError::CodedFailure { code, cause },
    }
}

/// A run ends after `silence_seconds`. Its last call may take this much longer.
const LAST_CALL_MAX: Duration = Duration::from_mins(3);

/// An engine that is a workflow of ComfyUI servers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComfyKind {
    base_urls: Vec<String>,
    /// The file that ComfyUI exported for its API.
    workflow: PathBuf,
    /// Headers of every call, for a proxy before the servers.
    #[serde(default)]
    headers: BTreeMap<String, SecretText>,
    /// Empty: none.
    #[serde(default)]
    key_file: PathBuf,
    /// Empty: none.
    #[serde(default)]
    key_variable: String,
    #[serde(default = "poll_milliseconds")]
    poll_milliseconds: u32,
    #[serde(default = "silence_seconds")]
    silence_seconds: u32,
    #[serde(default = "run_seconds")]
    run_seconds: u32,
    bindings: WorkflowBindings,
    describe: WorkflowDescription,
}

const fn poll_milliseconds() -> u32 {
    1_000
}

const fn silence_seconds() -> u32 {
    600
}

const fn run_seconds() -> u32 {
    7_200
}

impl EngineKind for ComfyKind {
    fn check(&self, _confined: bool) -> Result<(), KindError> {
        if self.base_urls.is_empty() {
            return Err(KindError(
                "base_urls must name a server, such as http://127.0.0.1:8188".to_owned(),
            ));
        }
        if let Some(odd) = self.base_urls.iter().find(|url| base_url(url).is_none()) {
            return Err(KindError(format!(
                "'{odd}' is not the base URL of a server, such as http://127.0.0.1:8188"
            )));
        }
        check_each_once(&self.base_urls).map_err(unusable)?;
        for (name, value) in [
            ("poll_milliseconds", self.poll_milliseconds),
            ("silence_seconds", self.silence_seconds),
            ("run_seconds", self.run_seconds),
        ] {
            if value == 0 {
                return Err(KindError(format!("{name} must be at least 1")));
            }
        }
        headers(&self.options()?.headers)?;
        self.describe.check().map_err(KindError)?;
        self.bindings.check().map_err(KindError)
    }

    fn output(&self) -> EngineOutput<'_> {
        EngineOutput::Films(self)
    }

    fn device(&self) -> Option<String> {
        Some("upstream".to_owned())
    }
}

impl FilmKind for ComfyKind {
    fn engine(&self, name: &str, clock: Arc<dyn Clock>) -> Result<Arc<dyn FilmEngine>, KindError> {
        let timer = Arc::new(SystemTimer::new(clock.clone()));
        let comfy = ComfyServers::new(self.card()?, self.options()?, timer, clock)?;
        Ok(Arc::new(ComfyEngine::new(comfy, name)))
    }

    fn servers(&self) -> &[String] {
        &self.base_urls
    }

    fn can_unload(&self) -> bool {
        true
    }

    fn silence_max(&self) -> Duration {
        seconds(self.silence_seconds) + LAST_CALL_MAX
    }

    fn blocking_threads(&self) -> usize {
        DISK_THREADS
    }
}

impl ComfyKind {
    /// Reads the workflow.
    fn card(&self) -> Result<WorkflowCard, KindError> {
        let path = self.workflow.display();
        let unusable =
            |error: &dyn std::fmt::Display| KindError(format!("workflow {path}: {error}"));
        let length = std::fs::metadata(&self.workflow)
            .map_err(|error| unusable(&error))?
            .len();
        if length > WORKFLOW_BYTES_MAX {
            return Err(unusable(&"it is larger than any workflow"));
        }
        let bytes = std::fs::read(&self.workflow).map_err(|error| unusable(&error))?;
        let workflow = Workflow::read(&bytes).map_err(|error| unusable(&error))?;
        let card = WorkflowCard::new(workflow, self.bindings.clone(), self.describe.clone());
        card.map_err(|error| KindError(error.0))
    }

    fn options(&self) -> Result<ComfyOptions, KindError> {
        let defaults = ComfyOptions::new(self.base_urls.clone());
        let headers = self.headers.iter();
        Ok(ComfyOptions {
            headers: headers
                .map(|(name, value)| (name.clone(), value.0.clone()))
                .collect(),
            key: self.key()?,
            poll_every: Duration::from_millis(self.poll_milliseconds.into()),
            limits: PatienceLimits {
                silence_max: seconds(self.silence_seconds),
                run_max: seconds(self.run_seconds),
                ..defaults.limits
            },
            ..defaults
        })
    }

    fn key(&self) -> Result<KeySource, KindError> {
        key_source(&self.key_file, &self.key_variable).map_err(unusable)
    }
}

fn unusable(error: SettingsError) -> KindError {
    KindError(error.to_string())
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "[bindings]\nprompt = \"6.text\"\noutput = \"9\"\n[describe]\nfps = 16\n";

    fn check(head: &str) -> Result<(), KindError> {
        let text = format!("workflow = \"a.json\"\n{head}\n{REST}");
        toml::from_str::<ComfyKind>(&text).unwrap().check(false)
    }

    #[test]
    fn settings_that_no_server_could_meet_are_refused() {
        check("base_urls = [\"http://h:8188\"]").unwrap();
        for wrong in [
            "base_urls = []",
            "base_urls = [\"h:8188\"]",
            "base_urls = [\"http://h:1\", \"http://h:1\"]",
            "base_urls = [\"http://h:1\"]\npoll_milliseconds = 0",
            "base_urls = [\"http://h:1\"]\nkey_file = \"a\"\nkey_variable = \"B\"",
            "base_urls = [\"http://h:1\"]\nheaders = { \"a b\" = \"c\" }",
        ] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_of_headers_are_shown_nowhere() {
        let text = format!(
            "workflow = \"a.json\"\nbase_urls = [\"http://h:1\"]\nheaders = {{ x-key = \"marked-secret\" }}\n{REST}"
        );
        let kind: ComfyKind = toml::from_str(&text).unwrap();
        assert!(!format!("{kind:?}").contains("marked-secret"));
    }
}
