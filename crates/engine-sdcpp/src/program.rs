//! The server's program: where it is, what it says about itself, and how to start it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, io, thread};

use kinora_engine::EngineError;
use kinora_system::network;

use crate::arguments::{self, ServerOption};

/// A server with the options of a model.
#[derive(Clone, Debug)]
pub(crate) struct ServerProgram {
    path: PathBuf,
    options: Vec<ServerOption>,
    /// Arguments of the operator.
    arguments: Vec<String>,
    /// Whether it looks at the last frame of a Wan 2.2 TI2V model.
    pub(crate) ends_ti2v_clips: bool,
}

/// The file of the program `name`: a path, or a file in a folder of `PATH`.
pub(crate) fn find(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return name.is_file().then(|| name.to_owned());
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// The folders of the program and its libraries: those of its name and of the file behind it.
pub(crate) fn folders(name: &Path) -> Vec<PathBuf> {
    let Some(path) = find(name) else {
        return Vec::new();
    };
    let behind = path.canonicalize().ok();
    let folders = [Some(path), behind].into_iter().flatten();
    folders
        .filter_map(|path| path.parent().map(Path::to_owned))
        .collect()
}

/// What the program prints with one option.
fn ask(path: &Path, option: &str) -> Result<String, String> {
    let output = command(path)
        .arg(option)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{} cannot be run: {error}", path.display()))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().last().unwrap_or_default().to_owned();
        return Err(format!(
            "{} {option}: {}: {last}",
            path.display(),
            output.status
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The version that the program `name` prints, as one line.
pub(crate) fn version(name: &Path) -> Result<String, String> {
    let path = find(name).ok_or_else(|| missing(name))?;
    let text = ask(&path, "--version")?;
    Ok(format!("{} ({})", path.display(), text.trim()))
}

/// What to do without the program `name`.
pub(crate) fn missing(name: &Path) -> String {
    format!(
        "there is no program {}; install the server of stable-diffusion.cpp (docs/models.md), or set `server` to its path",
        name.display()
    )
}

impl ServerProgram {
    /// The program `name`, if this version of it has every option.
    pub(crate) fn open(
        name: &Path,
        options: Vec<ServerOption>,
        arguments: Vec<String>,
    ) -> Result<Self, EngineError> {
        let path = find(name).ok_or_else(|| EngineError::Failed(missing(name)))?;
        let help = ask(&path, "--help").map_err(EngineError::Failed)?;
        if let Some(option) = arguments::missing_option(&options, &help) {
            let version = version(name).map_err(EngineError::Failed)?;
            return Err(EngineError::Unsupported(format!(
                "the server has no {option}, which this model needs: {version}; install a newer one"
            )));
        }
        Ok(Self {
            ends_ti2v_clips: arguments::ends_ti2v_clips(&help),
            path,
            options,
            arguments,
        })
    }

    /// Starts the server on `port`. It may use no other one.
    pub(crate) fn start(&self, port: u16) -> io::Result<Child> {
        let mut command = command(&self.path);
        command
            .args(["--listen-ip", "127.0.0.1", "--listen-port"])
            .arg(port.to_string());
        for (name, value) in &self.options {
            command.arg(name).args(value);
        }
        command
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // The restriction covers the thread and the process that it starts, not this process.
        let starter = thread::Builder::new().name("server-start".to_owned());
        let started = starter.spawn(move || {
            if let Some(lacking) = network::allow_only_tcp_port(port) {
                tracing::warn!(lacking, "the server's network is not confined");
            }
            command.spawn()
        })?;
        started
            .join()
            .map_err(|_| io::Error::other("the thread that starts it panicked"))?
    }
}

/// A command that finds the libraries beside the program.
fn command(path: &Path) -> Command {
    let mut command = Command::new(path);
    let beside = path.parent().map(Path::as_os_str).unwrap_or_default();
    let mut folders: OsString = beside.to_owned();
    if let Some(more) = env::var_os("LD_LIBRARY_PATH") {
        folders.push(":");
        folders.push(more);
    }
    command.env("LD_LIBRARY_PATH", folders);
    command
}
