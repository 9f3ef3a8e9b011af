//! Finds what makes virtual environments: `uv`, or a Python that is suitable and complete. It installs neither.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::environment::kind::EnvironmentError;
use crate::environment::program;

/// The versions of Python 3 for which all requirements are published.
const MINORS: RangeInclusive<u32> = 11..=14;
/// The same for uv.
pub(super) const UV_VERSIONS: &str = ">=3.11,<3.15";
/// Names of interpreters, best first: that of the system, then those that are installed beside it.
const NAMES: [&str; 5] = [
    "python3",
    "python3.13",
    "python3.12",
    "python3.11",
    "python3.14",
];
/// Prints the minor version, and fails without the modules that make an environment.
const QUESTION: &str = "import sys\nprint(sys.version_info[1])\nimport ensurepip, venv";
const ADVICE: &str = "install a Python of version 3.11 to 3.14 with its modules venv and ensurepip (on Debian and Ubuntu: \
                      apt install python3 python3-venv), or uv, and run the same command again";

/// Where programs are, and what they are told.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgramContext {
    /// Folders with programs, as in `PATH`.
    pub(super) search_path: OsString,
    /// Variables for programs, beside those of this process.
    pub(super) variables: Vec<(String, String)>,
}

/// What makes an environment and installs into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EnvironmentMaker {
    /// `uv`, which gets a Python itself if the system has no suitable one.
    Uv(PathBuf),
    /// A Python with pip.
    Python(PathBuf),
}

impl ProgramContext {
    /// That of this process.
    pub(super) fn inherited() -> Self {
        Self {
            search_path: std::env::var_os("PATH").unwrap_or_default(),
            variables: Vec::new(),
        }
    }

    /// A command with the variables.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.envs(self.variables.iter().cloned());
        command
    }

    fn find(&self, name: &str) -> Option<PathBuf> {
        let mut paths = std::env::split_paths(&self.search_path).map(|folder| folder.join(name));
        paths.find(|path| path.is_absolute() && path.is_file())
    }

    fn has_variable(&self, prefix: &str) -> bool {
        let inherited = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
        let own = self.variables.iter().map(|(name, _)| name.clone());
        inherited.chain(own).any(|name| name.starts_with(prefix))
    }
}

/// Chooses what makes the environment. uv is faster, but reads no settings of pip: where an operator has only such, for example
/// for a proxy or an index of their own, pip is chosen.
///
/// # Errors
/// With neither, and why each Python is unsuitable.
pub(super) async fn find_maker(
    context: &ProgramContext,
) -> Result<EnvironmentMaker, EnvironmentError> {
    let uv = context.find("uv").map(EnvironmentMaker::Uv);
    let is_for_pip = context.has_variable("PIP_") && !context.has_variable("UV_");
    if let Some(uv) = uv.clone().filter(|_| !is_for_pip) {
        return Ok(uv);
    }
    let mut reasons = Vec::new();
    for name in NAMES {
        let Some(path) = context.find(name) else {
            continue;
        };
        match check_python(context, &path).await {
            None => return Ok(EnvironmentMaker::Python(path)),
            Some(reason) => reasons.push(format!("{} {reason}", path.display())),
        }
    }
    if reasons.is_empty() {
        reasons.push("there is neither python3 nor uv".to_owned());
    }
    uv.ok_or_else(|| {
        EnvironmentError(format!(
            "This model runs by Python, and no suitable one was found: {}. To go on, {ADVICE}.",
            reasons.join("; ")
        ))
    })
}

/// Why the Python at `path` is unsuitable, if it is.
async fn check_python(context: &ProgramContext, path: &Path) -> Option<String> {
    let end = match program::ask(context.command(path).args(["-c", QUESTION])).await {
        Ok(end) => end,
        Err(error) => return Some(format!("does not run ({error})")),
    };
    let minor = end.lines.first().and_then(|line| line.parse::<u32>().ok());
    match minor {
        None => Some("does not run".to_owned()),
        Some(minor) if !MINORS.contains(&minor) => Some(format!("is version 3.{minor}")),
        Some(_) if end.is_success => None,
        Some(_) => Some("lacks the module venv or ensurepip".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A folder with programs that are shell scripts.
    fn programs(scripts: &[(&str, &str)]) -> (tempfile::TempDir, ProgramContext) {
        let folder = tempfile::tempdir().unwrap();
        for (name, script) in scripts {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let context = ProgramContext {
            search_path: folder.path().into(),
            variables: vec![("UV_OFFLINE".to_owned(), "1".to_owned())],
        };
        (folder, context)
    }

    #[tokio::test]
    async fn the_first_suitable_program_makes_the_environment() {
        let (folder, context) = programs(&[("python3", "echo 9"), ("python3.12", "echo 12")]);
        let path = folder.path().join("python3.12");
        assert_eq!(
            find_maker(&context).await.unwrap(),
            EnvironmentMaker::Python(path)
        );

        let (folder, mut context) = programs(&[("uv", ""), ("python3", "echo 12")]);
        let uv = EnvironmentMaker::Uv(folder.path().join("uv"));
        assert_eq!(find_maker(&context).await.unwrap(), uv);
        // Settings for pip alone.
        context.variables = vec![("PIP_NO_INDEX".to_owned(), "1".to_owned())];
        let python = EnvironmentMaker::Python(folder.path().join("python3"));
        assert_eq!(find_maker(&context).await.unwrap(), python);
        fs::remove_file(folder.path().join("python3")).unwrap();
        assert_eq!(find_maker(&context).await.unwrap(), uv);
    }

    #[tokio::test]
    async fn without_a_suitable_program_the_reasons_and_the_remedy_are_named() {
        let lacking = "echo 12; echo 'ModuleNotFoundError: ensurepip' >&2; exit 1";
        for (scripts, reason) in [
            (vec![], "there is neither python3 nor uv"),
            (vec![("python3", "echo 10")], "is version 3.10"),
            (vec![("python3", "echo 15")], "is version 3.15"),
            (
                vec![("python3", lacking)],
                "lacks the module venv or ensurepip",
            ),
            (vec![("python3", "exit 1")], "does not run"),
        ] {
            let (_folder, context) = programs(&scripts);
            let error = find_maker(&context).await.unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert!(
                error.contains("apt install python3 python3-venv"),
                "{error}"
            );
        }
    }
}
