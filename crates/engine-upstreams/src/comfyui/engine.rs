//! A workflow as an engine of finished films, and the operator's settings of it, whose commented example is in
//! `config.default.toml`. It does not inspect the film.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use kinora_contract::{Clock, VideoSpec, Warning, WarningCode};
use kinora_engine::places::Places;
use kinora_engine::{
    EngineDescription, EngineError, EngineKind, EngineOutput, FilmEngine, FilmJob, FilmKind,
    KindError, ServerReport, refuse_unsupported,
};
use serde::Deserialize;

use super::card::{WorkflowCard, WorkflowDescription};
use super::run::ComfyTicket;
use super::shared::ComfyServers;
use super::workflow::{WORKFLOW_BYTES_MAX, Workflow, WorkflowBindings};
use crate::servers::{
    DISK_THREADS, LAST_CALL_MAX, ServerOptions, SystemTimer, UpstreamError, check_positive,
    key_source, milliseconds, read_small, read_ticket, seconds, setting,
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
            version: card.describe.version.clone(),
            features: card.bindings.features(),
            is_trained: card.describe.is_trained,
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
        if self.comfy.0.card.bindings.seed.is_empty() {
            vec![WarningCode::SeedIgnored.into()]
        } else {
            Vec::new()
        }
    }

    async fn film(&self, job: &FilmJob<'_>) -> Result<(), EngineError> {
        refuse_unsupported(self.description.features, job.spec)?;
        let bytes = self.comfy.make(job).await?;
        tracing::debug!(bytes, "film received");
        Ok(())
    }

    fn places(&self) -> Option<&Arc<Places>> {
        Some(&self.comfy.0.pool.places)
    }

    async fn call_off(&self, ticket: &str) -> Result<(), EngineError> {
        let Some(ticket) = read_ticket::<ComfyTicket>(ticket) else {
            return Ok(());
        };
        match self.comfy.call_off(&ticket).await {
            // If the server is no longer configured, there is nobody to call off.
            Ok(()) | Err(UpstreamError::Forgotten(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn unload(&self) {
        self.comfy.free().await;
    }

    async fn ask_servers(&self) -> Vec<ServerReport> {
        self.comfy.ask_all().await
    }
}

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
    #[serde(default = "setting::<1_000>")]
    poll_milliseconds: u32,
    #[serde(default = "setting::<600>")]
    silence_seconds: u32,
    #[serde(default = "setting::<7_200>")]
    run_seconds: u32,
    bindings: WorkflowBindings,
    describe: WorkflowDescription,
}

impl EngineKind for ComfyKind {
    fn check(&self, _confined: bool) -> Result<(), KindError> {
        if self.base_urls.is_empty() {
            return Err(KindError(
                "base_urls must name a server, such as http://127.0.0.1:8188".to_owned(),
            ));
        }
        check_positive(&[
            ("poll_milliseconds", self.poll_milliseconds),
            ("silence_seconds", self.silence_seconds),
            ("run_seconds", self.run_seconds),
        ])?;
        self.options()?;
        self.headers()?;
        self.describe.check()?;
        self.bindings.check()
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
        let comfy = ComfyServers::new(
            self.card()?,
            self.options()?,
            &self.headers()?,
            timer,
            clock,
        )?;
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
        let text = read_small(&self.workflow, WORKFLOW_BYTES_MAX)
            .map_err(|error| KindError(format!("workflow {path} {error}")))?;
        let workflow = Workflow::read(text.as_bytes())
            .map_err(|error| KindError(format!("workflow {path}: {error}")))?;
        WorkflowCard::new(workflow, self.bindings.clone(), self.describe.clone())
    }

    fn options(&self) -> Result<ServerOptions, KindError> {
        Ok(ServerOptions {
            key: key_source(&self.key_file, &self.key_variable)?,
            poll_every: milliseconds(self.poll_milliseconds),
            silence_max: seconds(self.silence_seconds),
            run_max: seconds(self.run_seconds),
            // ComfyUI takes 100 MB by default.
            request_bytes_max: 100 << 20,
            // The list of a class's models can be long.
            answer_bytes_max: 16 << 20,
            ..ServerOptions::with_urls(&self.base_urls)?
        })
    }

    /// The headers of every call, marked as sensitive: one of them may be a key.
    fn headers(&self) -> Result<HeaderMap, KindError> {
        let mut headers = HeaderMap::new();
        for (name, SecretText(value)) in &self.headers {
            let known = HeaderName::try_from(name);
            let (Ok(known), Ok(mut value)) = (known, HeaderValue::try_from(value)) else {
                return Err(KindError(format!(
                    "headers: '{name}' or its value fits into no header"
                )));
            };
            value.set_sensitive(true);
            headers.insert(known, value);
        }
        Ok(headers)
    }
}

/// Text that `Debug` does not show.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
struct SecretText(String);

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
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
