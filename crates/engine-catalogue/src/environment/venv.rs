//! The virtual environment of diffusers: made by uv, or by Python's `venv` and pip, with exact versions. Where packages come from
//! is left to the operator's settings of uv and pip, their variables included.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::environment::folder::{self, EngineFolder};
use crate::environment::interpreter::{EnvironmentMaker, ProgramContext, UV_VERSIONS, find_maker};
use crate::environment::kind::{EnvironmentError, EnvironmentWatcher};
use crate::environment::package::short_hash;
use crate::environment::program::{self, ProgramEnd};

/// What is installed.
pub(super) const REQUIREMENTS: &str = include_str!("../../environments/diffusers.txt");
/// What must be importable in the end, and which device PyTorch then has.
const CHECK: &str = "import torch, diffusers, kinora_engine\n\
    has = torch.cuda.is_available()\n\
    print(f'PyTorch {torch.__version__} and diffusers {diffusers.__version__}; GPU: ' + \
    (torch.cuda.get_device_name() if has else 'none that PyTorch can use'))";
const PIP_INSTALL: &str =
    "-m pip install --no-input --progress-bar off --disable-pip-version-check";
/// Time between two looks at the size of the folder.
const TICK: Duration = Duration::from_secs(3);

/// Prepares the environment below `engines` unless it is ready; returns its folder and its interpreter. `package` is the folder
/// of `kinora_engine`.
pub(super) async fn prepare_venv(
    engines: &Path,
    package: &Path,
    context: &ProgramContext,
    watcher: &dyn EnvironmentWatcher,
) -> Result<(PathBuf, PathBuf), EnvironmentError> {
    let folder = EngineFolder::open(engines, &folder_name())?;
    let path = folder.path.join("venv");
    let venv = Venv {
        folder: &folder.path,
        python: path.join("bin/python"),
        path,
        context,
        watcher,
    };
    // Its interpreter is a link to the system's, which an update of the system may have removed.
    if folder.marker().is_none() || !venv.has_module("encodings").await {
        folder.unmark()?;
        let maker = find_maker(context).await?;
        // pip arrives last, and uv needs none.
        let module = match maker {
            EnvironmentMaker::Uv(_) => "encodings",
            EnvironmentMaker::Python(_) => "pip",
        };
        if !venv.has_module(module).await {
            folder::remove(&venv.path)?;
            venv.make(&maker).await?;
        }
        venv.install(&maker).await?;
        venv.check(package).await?;
        folder.mark("")?;
    }
    Ok((venv.folder.to_owned(), venv.python))
}

/// The folder's name depends on the versions: others make an environment of their own.
pub(super) fn folder_name() -> String {
    let lines = REQUIREMENTS.lines();
    format!(
        "diffusers-{}",
        short_hash(lines.filter(|line| !line.starts_with('#')))
    )
}

/// A virtual environment that is being prepared.
struct Venv<'a> {
    folder: &'a Path,
    path: PathBuf,
    python: PathBuf,
    context: &'a ProgramContext,
    watcher: &'a dyn EnvironmentWatcher,
}

impl Venv<'_> {
    /// Whether the interpreter starts and has this module.
    async fn has_module(&self, module: &str) -> bool {
        let mut command = self.context.command(&self.python);
        let asked = program::ask(command.args(["-c", &format!("import {module}")])).await;
        asked.is_ok_and(|end| end.is_success)
    }

    async fn make(&self, maker: &EnvironmentMaker) -> Result<(), EnvironmentError> {
        let shown = self.path.display();
        self.watcher
            .step(&format!("Making a Python environment in {shown}"));
        let (program, arguments): (_, &[&str]) = match maker {
            EnvironmentMaker::Uv(uv) => (uv, &["venv", "--python", UV_VERSIONS]),
            EnvironmentMaker::Python(python) => (python, &["-m", "venv"]),
        };
        let mut command = self.context.command(program);
        command.args(arguments).arg(&self.path);
        let made = program::run(&mut command, &|line| self.watcher.line(line)).await;
        let what = "The Python environment could not be made";
        succeeded(made, what, &self.path)
            .map_err(|error| folder::remove(&self.path).err().unwrap_or(error))?;
        Ok(())
    }

    /// Installs the requirements. What is there already stays: after an interruption pip also has what it downloaded, in its
    /// cache.
    async fn install(&self, maker: &EnvironmentMaker) -> Result<(), EnvironmentError> {
        let list = self.folder.join("requirements.txt");
        std::fs::write(&list, REQUIREMENTS).map_err(EnvironmentError::at(&list))?;
        self.watcher
            .step("Installing PyTorch and diffusers (several gigabytes)");
        let mut command;
        match maker {
            EnvironmentMaker::Uv(uv) => {
                command = self.context.command(uv);
                command.args(["pip", "install", "--python"]);
                command.arg(&self.python);
            }
            EnvironmentMaker::Python(_) => {
                command = self.context.command(&self.python);
                command.args(PIP_INSTALL.split(' '));
            }
        }
        command.arg("--requirement").arg(&list);
        let print = |line: &str| self.watcher.line(line);
        let installing = program::run(&mut command, &print);
        tokio::pin!(installing);
        let mut ticks = tokio::time::interval(TICK);
        let installed = loop {
            tokio::select! {
                ended = &mut installing => break ended,
                _ = ticks.tick() => {
                    let path = self.folder.to_owned();
                    let size = tokio::task::spawn_blocking(move || folder::size(&path)).await;
                    self.watcher.grown(size.unwrap_or(0), None);
                }
            }
        };
        let what = "The Python packages could not be installed";
        succeeded(installed, what, &self.python).map(drop)
    }

    /// Imports what was installed, and says which GPU PyTorch has. None is no failure here: the machine may be prepared without
    /// its driver, and the check of the model will fail.
    async fn check(&self, package: &Path) -> Result<(), EnvironmentError> {
        self.watcher.step("Checking the Python environment");
        let mut command = self.context.command(&self.python);
        command.args(["-c", CHECK]).env("PYTHONPATH", package);
        let asked = program::ask(&mut command).await;
        let end = succeeded(asked, "The Python environment does not work", &self.python)?;
        // Libraries may print warnings around it.
        let mut lines = end.lines.iter().map(String::as_str);
        let line = lines.find(|line| line.starts_with("PyTorch "));
        self.watcher.note(line.unwrap_or("It works"));
        Ok(())
    }
}

/// How a program ended if it succeeded; otherwise `what` failed, and what to do.
fn succeeded(
    ended: io::Result<ProgramEnd>,
    what: &str,
    path: &Path,
) -> Result<ProgramEnd, EnvironmentError> {
    let end = ended.map_err(EnvironmentError::at(path))?;
    if end.is_success {
        return Ok(end);
    }
    let text = end.text();
    let has = |part| text.contains(part);
    let advice = if has("No space left on device") {
        "Free some space on the disk (pip also uses TMPDIR and its cache), and run the same command again."
    } else if has("No matching distribution") || has("no version of") || has("No solution found") {
        "The package index lacks this version for this Python and this machine. Check the settings of pip or uv, such as \
         PIP_INDEX_URL or UV_INDEX_URL, or install another Python of version 3.11 to 3.14."
    } else {
        "Run the same command again: it goes on with what is there. If the network needs a proxy or an index of its own, set \
         the variables of pip (PIP_PROXY, PIP_INDEX_URL) or of uv."
    };
    Err(EnvironmentError(format!(
        "{what}. Its last lines:\n\n{text}\n\n{advice}"
    )))
}
