//! The server's program: where it is, what it says about itself, and how to start it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs, io, thread};

use kinora_engine::{EngineError, SandboxNeeds};
use kinora_system::network;

use crate::arguments::{self, ServerOption};

/// Its usual name.
pub(crate) const PROGRAM: &str = "sd-server";

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
///
/// # Errors
/// What to do without the program.
pub(crate) fn find(name: &Path) -> Result<PathBuf, String> {
    let folders = env::var_os("PATH").filter(|_| name.components().count() == 1);
    let found = match folders {
        Some(folders) => env::split_paths(&folders)
            .map(|folder| folder.join(name))
            .find(|path| path.is_file()),
        None => Some(name.to_owned()).filter(|path| path.is_file()),
    };
    found.ok_or_else(|| {
        format!(
            "there is no program {}; install the server of stable-diffusion.cpp (docs/models.md), or set `server` to its path",
            name.display()
        )
    })
}

/// What the program `name`, and the file behind it, read to start. Their folder as a whole stays closed: it may be the home or the
/// working folder.
///
/// It lists folders of libraries: published builds have one for each kind of CPU, and choose among those that they find beside the
/// program (`ggml_backend_load_best`).
pub(crate) fn needs(name: &Path) -> SandboxNeeds {
    let mut needs = SandboxNeeds::default();
    let path = find(name).ok();
    let behind = path.as_ref().and_then(|path| path.canonicalize().ok());
    for path in [path, behind].into_iter().flatten() {
        let folder = path.parent().unwrap_or(&path);
        let libraries = libraries_in(folder);
        if !libraries.is_empty() {
            needs.listed.push(folder.to_owned());
        }
        needs.programs.extend(libraries);
        needs.programs.extend(libraries_in(&folder.join("lib")));
        needs.programs.extend(libraries_in(&folder.join("../lib")));
        // The one that a script starts.
        needs.programs.push(folder.join(PROGRAM));
        needs.programs.push(path);
    }
    needs
}

/// The shared libraries of a folder: `libggml.so`, `libggml.so.0`.
fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    // Open to every sandbox, and large.
    if folder
        .canonicalize()
        .is_ok_and(|folder| folder.starts_with("/usr"))
    {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_named_so = name.ends_with(".so") || name.contains(".so.");
        // Not a folder of that name, with all its contents.
        is_named_so && name.starts_with("lib") && path.is_file()
    };
    entries
        .map(|entry| entry.path())
        .filter(is_library)
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
        let (path, last) = (path.display(), errors.lines().last().unwrap_or_default());
        return Err(format!("{path} {option}: {}: {last}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The version that the program `name` prints, as one line.
pub(crate) fn version(name: &Path) -> Result<String, String> {
    let path = find(name)?;
    let text = ask(&path, "--version")?;
    Ok(format!("{} ({})", path.display(), text.trim()))
}

impl ServerProgram {
    /// The program `name`, if this version of it has every option.
    pub(crate) fn open(
        name: &Path,
        options: Vec<ServerOption>,
        arguments: Vec<String>,
    ) -> Result<Self, EngineError> {
        let path = find(name).map_err(EngineError::Failed)?;
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

    /// Starts the server on `port`. It may listen on no other one, and connect to none.
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
        // To be killed with all that it starts.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        // The restriction covers the thread and the process that it starts, not this process.
        let starter = thread::Builder::new().name("server-start".to_owned());
        let started = starter.spawn(move || {
            if let Some(lacking) = network::allow_only_tcp_listener(port) {
                tracing::warn!(lacking, "the server's network is not confined");
            }
            command.spawn()
        })?;
        started
            .join()
            .map_err(|_| io::Error::other("the thread that starts it panicked"))?
    }
}

/// A command that finds the libraries beside the program, and that leaves out ggml's backtrace when it aborts: a debugger, which
/// the sandbox stops, and lines in front of which the cause would be lost.
fn command(path: &Path) -> Command {
    let mut command = Command::new(path);
    let beside = path.parent().map(Path::as_os_str).unwrap_or_default();
    let mut folders: OsString = beside.to_owned();
    if let Some(more) = env::var_os("LD_LIBRARY_PATH") {
        folders.push(":");
        folders.push(more);
    }
    command
        .env("LD_LIBRARY_PATH", folders)
        .env("GGML_NO_BACKTRACE", "1");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_needs_its_libraries_and_nothing_else_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        for folder in [&bin, &bin.join("libdata.so"), &folder.path().join("lib")] {
            fs::create_dir(folder).unwrap();
        }
        let server = bin.join("server");
        fs::write(&server, "").unwrap();
        fs::write(bin.join("signing.key"), "").unwrap();
        assert_eq!(needs(&server).listed, Vec::<PathBuf>::new());
        let libraries = [
            "libggml-cpu-haswell.so",
            "libggml.so.0",
            "../lib/libcudart.so.12",
        ];
        for name in libraries {
            fs::write(bin.join(name), "").unwrap();
        }
        let found = needs(&server);
        assert!(
            libraries
                .iter()
                .all(|name| found.programs.contains(&bin.join(name)))
        );
        let closed = |path: &PathBuf| path.is_dir() || path.ends_with("signing.key");
        assert!(!found.programs.iter().any(closed), "{found:?}");
        assert!(found.listed.contains(&bin));

        // Behind a link elsewhere.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&server, &link).unwrap();
        let library = bin.canonicalize().unwrap().join("libggml.so.0");
        assert!(needs(&link).programs.contains(&library));
        assert_eq!(needs(Path::new("/no/such/server")), SandboxNeeds::default());
    }
}
