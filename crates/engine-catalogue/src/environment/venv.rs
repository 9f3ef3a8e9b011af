//! The virtual environment of diffusers: made by uv, or by Python's `venv` and pip, with exact versions. Where packages come from
//! is left to the operator's settings of uv and pip, their variables included.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::environment::folder::{self, EngineFolder};
use crate::environment::interpreter::{EnvironmentMaker, ProgramContext, find_maker};
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
    let name = format!("diffusers-{}", short_hash([REQUIREMENTS]));
    let folder = EngineFolder::open(engines, &name)?;
    let venv = folder.path().join("venv");
    let python = venv.join("bin/python");
    // Its interpreter is a link to the system's, which an update of the system may have removed.
    if folder.marker().is_none() || !has_module(context, &python, "encodings").await {
        folder.unmark()?;
        let maker = find_maker(context).await?;
        // pip arrives last, and uv needs none.
        let module = match maker {
            EnvironmentMaker::Uv(_) => "encodings",
            EnvironmentMaker::Python(_) => "pip",
        };
        if !has_module(context, &python, module).await {
            folder::remove(&venv)?;
            make(&maker, &venv, context, watcher).await?;
        }
        install(&maker, &folder, &python, context, watcher).await?;
        check(&python, package, context, watcher).await?;
        folder.mark("")?;
    }
    Ok((folder.path().to_owned(), python))
}

/// Whether the interpreter starts and has this module.
async fn has_module(context: &ProgramContext, python: &Path, module: &str) -> bool {
    let mut command = context.command(python);
    let asked = program::ask(command.args(["-c", &format!("import {module}")])).await;
    asked.is_ok_and(|end| end.is_success)
}

async fn make(
    maker: &EnvironmentMaker,
    venv: &Path,
    context: &ProgramContext,
    watcher: &dyn EnvironmentWatcher,
) -> Result<(), EnvironmentError> {
    watcher.step(&format!(
        "Making a Python environment in {}",
        venv.display()
    ));
    let mut command = match maker {
        EnvironmentMaker::Uv(uv) => {
            let mut command = context.command(uv);
            command.args(["venv", "--python", ">=3.11"]);
            command
        }
        EnvironmentMaker::Python(python) => {
            let mut command = context.command(python);
            command.args(["-m", "venv"]);
            command
        }
    };
    let made = program::run(command.arg(venv), &|line| watcher.line(line)).await;
    let removed = |error| folder::remove(venv).err().unwrap_or(error);
    match made {
        Ok(end) if end.is_success => Ok(()),
        Ok(end) => Err(removed(failure(
            "The Python environment could not be made",
            &end,
        ))),
        Err(error) => Err(removed(EnvironmentError::file(venv, &error))),
    }
}

/// Installs the requirements. What is there already stays: after an interruption pip also has what it downloaded, in its cache.
async fn install(
    maker: &EnvironmentMaker,
    folder: &EngineFolder,
    python: &Path,
    context: &ProgramContext,
    watcher: &dyn EnvironmentWatcher,
) -> Result<(), EnvironmentError> {
    let list = folder.path().join("requirements.txt");
    std::fs::write(&list, REQUIREMENTS).map_err(|error| EnvironmentError::file(&list, &error))?;
    watcher.step("Installing PyTorch and diffusers (several gigabytes)");
    let mut command = match maker {
        EnvironmentMaker::Uv(uv) => {
            let mut command = context.command(uv);
            command.args(["pip", "install", "--python"]).arg(python);
            command
        }
        EnvironmentMaker::Python(_) => {
            let mut command = context.command(python);
            command.args([
                "-m",
                "pip",
                "install",
                "--no-input",
                "--progress-bar",
                "off",
            ]);
            command.arg("--disable-pip-version-check");
            command
        }
    };
    command.arg("--requirement").arg(&list);
    let print = |line: &str| watcher.line(line);
    let installing = program::run(&mut command, &print);
    tokio::pin!(installing);
    let mut ticks = tokio::time::interval(TICK);
    let installed = loop {
        tokio::select! {
            ended = &mut installing => break ended,
            _ = ticks.tick() => {
                let path = folder.path().to_owned();
                let size = tokio::task::spawn_blocking(move || folder::size(&path)).await;
                watcher.grown(size.unwrap_or(0), None);
            }
        }
    };
    match installed {
        Ok(end) if end.is_success => Ok(()),
        Ok(end) => Err(failure("The Python packages could not be installed", &end)),
        Err(error) => Err(EnvironmentError::file(python, &error)),
    }
}

/// Imports what was installed, and says which GPU PyTorch has. None is no failure here: the machine may be prepared without its
/// driver, and the check of the model will fail.
async fn check(
    python: &Path,
    package: &Path,
    context: &ProgramContext,
    watcher: &dyn EnvironmentWatcher,
) -> Result<(), EnvironmentError> {
    watcher.step("Checking the Python environment");
    let mut command = context.command(python);
    command.args(["-c", CHECK]).env("PYTHONPATH", package);
    let end = program::ask(&mut command).await;
    let end = end.map_err(|error| EnvironmentError::file(python, &error))?;
    if !end.is_success {
        return Err(failure("The Python environment does not work", &end));
    }
    // Libraries may print warnings around it.
    let mut lines = end.lines.iter();
    watcher.note(
        lines
            .find(|line| line.starts_with("PyTorch "))
            .map_or("It works", String::as_str),
    );
    Ok(())
}

fn failure(what: &str, end: &ProgramEnd) -> EnvironmentError {
    let text = end.text();
    let has = |part| text.contains(part);
    let advice = if has("No space left on device") {
        "Free some space on the disk (pip also uses TMPDIR and its cache), and run the same command again."
    } else if has("No matching distribution") || has("no version of") || has("No solution found") {
        "The package index lacks this version for this Python and this machine. Check the settings of pip or uv, such as \
         PIP_INDEX_URL or UV_INDEX_URL, or install another Python of version 3.11 or later."
    } else {
        "Run the same command again: it goes on with what is there. If the network needs a proxy or an index of its own, set \
         the variables of pip (PIP_PROXY, PIP_INDEX_URL) or of uv."
    };
    EnvironmentError::Failed(format!("{what}. Its last lines:\n\n{text}\n\n{advice}"))
}
