//! A server for one command: `kinora serve` on a free loopback port, with a temporary data folder.
//! It ignores the settings of the environment, above all the store.

use std::fs::{self, DirBuilder};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;

use serde_json::Value;

use super::service::Service;
use crate::failure::Failure;
use crate::{folder, system};

/// A running server; stopped and removed when dropped.
#[derive(Debug)]
pub(super) struct Local {
    folder: PathBuf,
    server: Child,
    url: String,
}

impl Local {
    /// Starts the server, and returns once it serves.
    pub(super) fn start(config: Option<&Path>) -> Result<Self, Failure> {
        let failed = |error| Failure::because("A server could not be started", error);
        let name = format!(
            "kinora-local-{:016x}",
            u64::from_le_bytes(system::random()?)
        );
        let folder = std::env::temp_dir().join(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(failed)?;
        let server = command(&folder, config).and_then(|mut command| command.spawn());
        let server = server.map_err(|error| {
            // The folder is still empty.
            let _ = fs::remove_dir(&folder);
            failed(error)
        })?;
        let mut local = Self {
            folder,
            server,
            url: String::new(),
        };
        let lines = local.server.stderr.take().map(BufReader::new);
        local.url = lines.and_then(serving).ok_or_else(|| {
            Failure::new(
                "The server for --local did not start; run `kinora doctor` to find out why.",
            )
        })?;
        Ok(local)
    }

    /// The service, with the key that its first start created.
    pub(super) fn service(&self) -> Result<Service, Failure> {
        let key = folder::read_first_key(&self.folder.join("data"))?;
        Service::at(Some(&self.url), Some(key))
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        // All of its data is removed, so an orderly stop would be pointless.
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn command(folder: &Path, config: Option<&Path>) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    let settings = std::env::vars_os().map(|(name, _)| name);
    for name in settings.filter(|name| name.to_string_lossy().starts_with("KINORA_")) {
        command.env_remove(name);
    }
    command
        .args([
            "serve",
            "--log-format",
            "json",
            "--listen",
            "127.0.0.1:0",
            "--data",
        ])
        .arg(folder.join("data"))
        .args(config.map(|_| "--config"))
        .args(config)
        // Overrides the configuration file, whose store must not be used.
        .envs([
            ("KINORA_STORE_URL", ""),
            ("KINORA_RESULTS_URL", ""),
            ("KINORA_BASE_URL", ""),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // Ctrl-C is only for this command, which stops the server itself.
        .process_group(0);
    Ok(command)
}

/// Finds the address in the start line of the log; reads and drops the rest, so that the server
/// never blocks.
fn serving(mut log: BufReader<ChildStderr>) -> Option<String> {
    let mut line = String::new();
    while log.read_line(&mut line).ok()? > 0 {
        let event: Option<Value> = serde_json::from_str(&line).ok();
        if let Some(event) = event.filter(|event| event["message"] == "serving") {
            let url = event["base_url"].as_str()?.to_owned();
            thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
            return Some(url);
        }
        line.clear();
    }
    None
}
