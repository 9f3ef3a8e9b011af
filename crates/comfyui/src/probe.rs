//! Whether a server answers, is new enough, and has what the workflow needs. Costs no generation.

use kinora_engine::ServerReport;
use kinora_upstream::{chain, shown};
use serde_json::Value;

use crate::error::ComfyError;
use crate::fitness;
use crate::server::Server;
use crate::shared::{Comfy, Shared};

/// The first version that tells the state of a job that waits or runs. Names for jobs of ours are older (0.3.45), and so
/// is an interrupt of one job (0.3.57).
const VERSION_MIN: (u32, u32) = (0, 6);

/// Why an old server is of no use.
const OLD: &str = "it does not tell the state of its jobs; update it to 0.6.0 or later";

impl Comfy {
    /// Asks each server whether it can run the workflow: its version, classes, inputs and model files.
    pub async fn ask_all(&self) -> Vec<ServerReport> {
        let mut asked = Vec::new();
        for (index, upstream) in self.0.upstreams.iter().enumerate() {
            let refusal = match self.0.problems(index).await {
                Ok(problems) => (!problems.is_empty()).then(|| problems.join("\n")),
                Err(error) => Some(chain(&error)),
            };
            asked.push(ServerReport {
                server: upstream.name.clone(),
                refusal,
            });
        }
        asked
    }
}

impl Shared {
    fn server(&self, index: usize) -> Server<'_> {
        Server {
            shared: self,
            index,
        }
    }

    /// Checks whether an excluded server is available again.
    pub(crate) async fn probe(&self, index: usize) {
        let name = &self.upstreams[index].name;
        // What it has may have changed while it was away.
        self.set_fit(index, false);
        match self.version(index).await {
            Ok(_) => {
                tracing::info!(server = name, "server available again");
                self.places.is_back(index);
            }
            Err(error) => {
                // Without an answer the call itself has recorded it.
                if let ComfyError::Refused(cause) = &error {
                    self.places.outage(index, &cause.to_string());
                }
                tracing::debug!(
                    server = name,
                    error = chain(&error),
                    "server still excluded"
                );
            }
        }
    }

    async fn version(&self, index: usize) -> Result<String, ComfyError> {
        let server = self.server(index);
        let limit = self.options.probe_timeout;
        let reply = server.get(&["system_stats"], limit).await?;
        if !reply.is_success() {
            return Err(ComfyError::Refused(reply.refusal()));
        }
        let sent: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let version = sent
            .pointer("/system/comfyui_version")
            .and_then(Value::as_str);
        Ok(shown(version.unwrap_or("unknown").as_bytes()))
    }

    /// What a server lacks for the workflow, once asked; `None` if it has everything.
    pub(crate) async fn missing(&self, index: usize) -> Result<Option<String>, ComfyError> {
        if self.is_fit(index) {
            return Ok(None);
        }
        if !self.server(index).tells_jobs().await? {
            return Ok(Some(OLD.to_owned()));
        }
        for class in fitness::classes(&self.card) {
            if self.server(index).class(class).await?.is_none() {
                return Ok(Some(format!("it has no node class {class}")));
            }
        }
        self.set_fit(index, true);
        Ok(None)
    }

    /// Everything that keeps a server from running the workflow, for an operator.
    async fn problems(&self, index: usize) -> Result<Vec<String>, ComfyError> {
        let version = self.version(index).await?;
        let mut problems = Vec::new();
        if is_old(&version) {
            problems.push(format!("it is ComfyUI {version}: {OLD}"));
        }
        let mut known = fitness::Known::new();
        for class in fitness::classes(&self.card) {
            let info = self.server(index).class(class).await?;
            known.insert(class.to_owned(), info);
        }
        problems.extend(fitness::problems(&self.card, &known));
        Ok(problems)
    }
}

/// Whether a version is below the first that serves us. One that says no numbers may be anything.
fn is_old(version: &str) -> bool {
    let mut parts = version
        .trim_start_matches('v')
        .split('.')
        .map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < VERSION_MIN,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(is_old("0.5.1") && is_old("v0.3.64"));
        assert!(!is_old("0.6.0") && !is_old("0.33.0") && !is_old("1.0") && !is_old("unknown"));
    }
}
