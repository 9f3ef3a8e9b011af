//! The settings of a command as an engine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kinora_contract::ModelPreset;
use kinora_engine::{
    ClipPlanner, Engine, EngineError, EngineKind, EngineOutput, EngineProgram, FilesReport,
    FrameKind, KindError, ProgramFiles,
};
use serde::Deserialize;

use crate::process_kind::planner::{DescribeTable, PromisedPlanner};

/// A command that speaks the engine protocol.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessKind {
    /// The program and its arguments.
    command: Vec<String>,
    /// The folder in which it starts; without it, that of the service.
    working_folder: Option<PathBuf>,
    /// One process for each, as `CUDA_VISIBLE_DEVICES`.
    #[serde(default)]
    devices: Vec<String>,
    /// Variables of its environment.
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// Passed to the command as JSON.
    #[serde(default)]
    settings: toml::Table,
    /// Whether its processes see no files but those of the system, the working folder, a folder of their own and the next
    /// two lists.
    #[serde(default)]
    confine: bool,
    /// Folders and files to read, and programs in them to run.
    #[serde(default)]
    readable: Vec<PathBuf>,
    /// Folders and files to change.
    #[serde(default)]
    writable: Vec<PathBuf>,
    describe: DescribeTable,
}

impl ProcessKind {
    /// Files that a confined command may access.
    fn files(&self) -> ProgramFiles {
        // The program itself must be readable to be executed.
        let program = self.command.first().map(PathBuf::from);
        let own = self.working_folder.iter().cloned();
        ProgramFiles {
            readable: own
                .chain(program)
                .chain(self.readable.iter().cloned())
                .collect(),
            writable: self.writable.clone(),
        }
    }
}

impl EngineKind for ProcessKind {
    fn check(&self, confined: bool) -> Result<(), KindError> {
        if self.command.first().is_none_or(String::is_empty) {
            return wrong("command must name a program");
        }
        if confined {
            return wrong(
                "a command of yours cannot run in the sandbox of Kinora's own engines; set host.sandbox = false, and \
                 confine = true to limit its files",
            );
        }
        let mut listed = self.readable.iter().chain(&self.writable).peekable();
        if !self.confine && listed.peek().is_some() {
            return wrong("readable and writable need confine = true");
        }
        if let Some(odd) = listed.find(|path| !path.is_absolute()) {
            return Err(KindError(format!(
                "{} must be an absolute path",
                odd.display()
            )));
        }
        if !self
            .environment
            .keys()
            .all(|name| !name.is_empty() && !name.contains(['=', '\0']))
        {
            return wrong("environment has a name that no variable can have");
        }
        if let Some(odd) = self.devices.iter().find(|device| !is_device(device)) {
            return Err(KindError(format!(
                "devices: '{odd}' is no name of a device; write numbers or UUIDs as `nvidia-smi -L` prints them, without \
                 spaces, such as \"0\", or \"0,1\" for a process with two"
            )));
        }
        self.describe.check()
    }

    fn output(&self) -> EngineOutput<'_> {
        EngineOutput::Frames(self)
    }

    /// Any: the command reads them.
    fn check_preset(&self, _: &ModelPreset) -> Result<(), KindError> {
        Ok(())
    }

    fn device(&self) -> Option<String> {
        (!self.devices.is_empty()).then(|| self.devices.join(", "))
    }
}

impl FrameKind for ProcessKind {
    fn planner(&self, name: &str) -> Result<Arc<dyn ClipPlanner>, KindError> {
        let DescribeTable {
            version,
            is_trained,
            ..
        } = &self.describe;
        let promises = self.describe.promises();
        Ok(Arc::new(PromisedPlanner::new(
            name,
            version,
            *is_trained,
            promises,
        )))
    }

    fn open(&self, name: &str) -> Result<Box<dyn Engine>, EngineError> {
        // The host starts the command instead; see `program`.
        Err(EngineError::Unsupported(format!("{name} is a command")))
    }

    fn check_files(&self) -> Option<FilesReport> {
        let name = self.command.first().map_or("", String::as_str);
        let is_there = finds_program(name);
        let state = if is_there { "found" } else { "not found" };
        Some(FilesReport {
            is_good: is_there,
            text: format!("command {name}: {state}"),
        })
    }

    fn program(&self) -> Option<EngineProgram> {
        Some(EngineProgram {
            command: self.command.clone(),
            environment: self.environment.clone(),
            folder: self.working_folder.clone(),
            devices: self.devices.clone(),
            settings: json(&toml::Value::Table(self.settings.clone())),
            promises: self.describe.promises(),
            confined: self.confine.then(|| self.files()),
        })
    }
}

fn wrong(what: &str) -> Result<(), KindError> {
    Err(KindError(what.to_owned()))
}

/// Converts TOML to JSON; dates become text.
fn json(value: &toml::Value) -> serde_json::Value {
    match value {
        toml::Value::String(text) => text.clone().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(is_true) => (*is_true).into(),
        // JSON has no dates.
        toml::Value::Datetime(date) => date.to_string().into(),
        toml::Value::Array(values) => values.iter().map(json).collect(),
        toml::Value::Table(table) => {
            let rows = table.iter().map(|(key, value)| (key.clone(), json(value)));
            serde_json::Value::Object(rows.collect())
        }
    }
}

/// Whether a text can be the value of `CUDA_VISIBLE_DEVICES`: names without spaces, separated by commas.
fn is_device(text: &str) -> bool {
    text.split(',').all(|name| {
        !name.is_empty() && !name.contains(|one: char| one.is_whitespace() || one.is_control())
    })
}

/// Whether a program can be started by this name: a path, or a file in a folder of `PATH`.
pub fn finds_program(name: &str) -> bool {
    if name.contains('/') {
        return Path::new(name).is_file();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_its_path_and_by_its_name() {
        assert!(finds_program("/bin/sh") && finds_program("sh"));
        assert!(
            !finds_program("/bin/no-such-program")
                && !finds_program("no-such-program")
                && !finds_program("")
        );
    }

    #[test]
    fn devices_are_numbers_uuids_and_lists_of_both() {
        for name in [
            "0",
            "0,1",
            "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6",
            "MIG-1,GPU-2",
            "cpu",
        ] {
            assert!(is_device(name), "{name}");
        }
        for name in ["", "0,", ",", "0, 1", " 0", "0\n", "0\0"] {
            assert!(!is_device(name), "{name:?}");
        }
    }

    #[test]
    fn settings_become_json() {
        let table = "command = [\"a\"]\nsettings = { steps = 30, model = \"b\", since = 2026-11-25, more = [1.5, { is = true }] }\n\
                     describe = { fps = 16, features = {} }";
        let kind: ProcessKind = toml::from_str(table).unwrap();
        let program = kind.program().unwrap();
        assert_eq!(
            program.settings,
            serde_json::json!({"steps": 30, "model": "b", "since": "2026-11-25", "more": [1.5, {"is": true}]})
        );
    }
}
