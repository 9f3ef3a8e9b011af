//! Signs finished videos with the operator's command (`results.sign_command`).

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::Clock;
use kinora_engine_host::finds_program;
use kinora_engine_host::run_command;
use kinora_media::{ParentVideo, Provenance};
use kinora_worker::FilmSigner;
use serde_json::json;

use crate::config::Config;
use crate::engine_host::{clock, operator_command};
use crate::failure::Failure;

/// The operator's command.
#[derive(Debug)]
struct SignCommand {
    /// The program and its arguments, with placeholders.
    command: Vec<String>,
    limit: Duration,
    clock: Arc<dyn Clock>,
}

/// The program that signs videos, if they are signed. Fails if it cannot be started.
pub(crate) fn program(config: &Config) -> Result<Option<&str>, Failure> {
    let Some(program) = config.results.sign_command.first() else {
        return Ok(None);
    };
    if !finds_program(program) {
        return Err(Failure::new(format!(
            "The program '{program}' of results.sign_command is not found: install it, or name its full path."
        )));
    }
    Ok(Some(program))
}

/// The signer of a worker, which says in the log what signs its videos.
pub(crate) fn open(config: &Config) -> Result<Option<Arc<dyn FilmSigner>>, Failure> {
    let Some(program) = program(config)? else {
        return Ok(None);
    };
    tracing::info!(program, "signing videos");
    let results = &config.results;
    Ok(Some(Arc::new(SignCommand {
        command: results.sign_command.clone(),
        limit: Duration::from_secs(results.sign_timeout_seconds.into()),
        clock: clock(),
    })))
}

impl FilmSigner for SignCommand {
    fn sign(
        &self,
        input: &Path,
        output: &Path,
        provenance: &Provenance,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        // The scratch folder may be relative to this process's working directory.
        let [input, output] = [std::path::absolute(input)?, std::path::absolute(output)?];
        let (input, output) = (input.to_string_lossy(), output.to_string_lossy());
        let arguments = self.command.iter();
        let filled =
            arguments.map(|one| one.replace("{input}", &input).replace("{output}", &output));
        let command = operator_command(&filled.collect::<Vec<_>>(), None);
        let statement = statement(provenance);
        run_command("signer", command, statement, self.limit, &self.clock, go_on)?;
        Ok(())
    }
}

/// What the command reads: one JSON object about the video.
fn statement(provenance: &Provenance) -> String {
    let is_edit = matches!(provenance.derived_from, Some(ParentVideo::Edited(_)));
    let statement = json!({
        "task": provenance.id,
        "model": provenance.model,
        "engine": provenance.engine,
        "tool": provenance.tool,
        "date": provenance.created,
        "operation": if is_edit { "edited" } else { "created" },
        "parent": provenance.derived_from.as_ref().map(ParentVideo::id),
        "digital_source_type": provenance.source.uri(),
    });
    format!("{statement}\n")
}
