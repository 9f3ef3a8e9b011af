//! The server of stable-diffusion.cpp: a build that its authors or others publish, downloaded, checked and unpacked; or the
//! operator's own. It compiles nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kinora_http_download::{DownloadError, DownloadWatcher, Downloader};
use tokio::process::Command;

use crate::environment::archive::unpack;
use crate::environment::folder::{EngineFolder, remove};
use crate::environment::kind::{
    EnvironmentError, EnvironmentOptions, EnvironmentWatcher, PreparedEnvironment, SdServerBuild,
};
use crate::environment::program;
use crate::environment::release::{ServerBuild, find_file};

const BUILDS: &str = include_str!("../../environments/sd-server.toml");
const PROGRAM: &str = "sd-server";
/// Folder of the unpacked archive.
const UNPACKED: &str = "files";
const OWN: &str =
    "build stable-diffusion.cpp for this machine and name its server with --sd-server PATH";

/// Operating system and processor, by their names in [`std::env::consts`].
pub(super) type Platform<'n> = (&'n str, &'n str);

/// Prepares the server below `engines` unless it is ready.
pub(super) async fn prepare_server(
    build: &SdServerBuild,
    engines: &Path,
    options: &EnvironmentOptions,
    watcher: &dyn EnvironmentWatcher,
) -> Result<PreparedEnvironment, EnvironmentError> {
    let label = match build {
        SdServerBuild::Given(path) => {
            watcher.note(&version(path).await?);
            return Ok(prepared(path.parent().unwrap_or(path), path));
        }
        SdServerBuild::Cuda12 => "cuda12",
        SdServerBuild::Vulkan => "vulkan",
        SdServerBuild::Cpu => "cpu",
    };
    let published = published(label, (std::env::consts::OS, std::env::consts::ARCH))?;
    let folder = EngineFolder::open(engines, &format!("{PROGRAM}-{}-{label}", published.tag))?;
    // The marker has the program's path.
    if let Some(program) = folder.marker().map(|name| folder.path.join(name))
        && version(&program).await.is_ok()
    {
        return Ok(prepared(&folder.path, &program));
    }
    folder.unmark()?;
    let archive = download(&published, engines, options, watcher).await?;
    watcher.step(&format!("Unpacking {}", published.asset));
    let installed = install(&archive, &folder).await;
    // A complete archive would not be downloaded again.
    remove(&archive)?;
    let program = installed?;
    watcher.note(&version(&program).await?);
    if *build != SdServerBuild::Cpu {
        watcher.note(&devices(&program).await);
    }
    let name = program.strip_prefix(&folder.path).unwrap_or(&program);
    folder.mark(&name.to_string_lossy())?;
    Ok(prepared(&folder.path, &program))
}

fn prepared(folder: &Path, program: &Path) -> PreparedEnvironment {
    PreparedEnvironment {
        folder: folder.to_owned(),
        command: vec![program.display().to_string()],
        environment: BTreeMap::new(),
    }
}

/// The published build of this label for a machine.
pub(super) fn published(
    label: &str,
    platform: Platform<'_>,
) -> Result<ServerBuild, EnvironmentError> {
    // The labels are those of the file: a test reads each.
    let mut builds: BTreeMap<String, ServerBuild> = toml::from_str(BUILDS).unwrap_or_default();
    let build = builds.remove(label);
    let (os, processor) = platform;
    build
        .filter(|_| platform == ("linux", "x86_64"))
        .ok_or_else(|| {
            EnvironmentError(format!(
                "There is no ready-made {PROGRAM} for {os} on {processor}: {OWN}."
            ))
        })
}

/// Downloads the archive, or its missing part, beside the folders.
async fn download(
    build: &ServerBuild,
    engines: &Path,
    options: &EnvironmentOptions,
    watcher: &dyn EnvironmentWatcher,
) -> Result<PathBuf, EnvironmentError> {
    let source = find_file(build, engines, options).await?;
    watcher.step(&format!("Downloading {}", build.asset));
    let progress = ArchiveWatcher {
        watcher,
        bytes: source.bytes,
    };
    let downloaded = match Downloader::new(options.download.clone()) {
        Ok(downloader) => downloader.get(&source, &progress).await,
        Err(error) => Err(error),
    };
    downloaded.map_err(|error| {
        EnvironmentError(format!(
            "{} could not be downloaded: {error}. Run the same command again to go on where it stopped, or {OWN}.",
            build.asset
        ))
    })?;
    Ok(source.path)
}

/// Unpacks `archive` into a new subfolder; returns the path of the program in it.
async fn install(archive: &Path, folder: &EngineFolder) -> Result<PathBuf, EnvironmentError> {
    let into = folder.path.join(UNPACKED);
    remove(&into)?;
    std::fs::create_dir(&into).map_err(EnvironmentError::at(&into))?;
    let (from, to) = (archive.to_owned(), into.clone());
    let unpacked = tokio::task::spawn_blocking(move || unpack(&from, &to)).await;
    let found = match unpacked {
        Ok(Ok(())) => find_program(&into).ok_or_else(|| format!("it has no file {PROGRAM}")),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    found.map_err(|why| {
        EnvironmentError(format!(
            "{} cannot be used: {why}. Update Kinora, or {OWN}.",
            archive.display()
        ))
    })
}

/// The program in `folder` or below it.
fn find_program(folder: &Path) -> Option<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).ok()?.flatten() {
            let kind = entry.file_type().ok()?;
            if kind.is_file() && entry.file_name() == PROGRAM {
                return Some(entry.path());
            }
            if kind.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    None
}

/// What the program says that it is; otherwise why it does not run, and what to do.
async fn version(program: &Path) -> Result<String, EnvironmentError> {
    let why = match program::ask(Command::new(program).arg("--version")).await {
        Ok(end) if end.is_success && !end.lines.is_empty() => return Ok(end.lines[0].clone()),
        Ok(end) => end.text(),
        Err(error) => error.to_string(),
    };
    let advice = if why.contains("GLIBC") {
        "This build needs a newer system library than this machine has (glibc 2.38 is that of Ubuntu 24.04 and Debian 13). \
         Use a newer system"
    } else if why.contains("libcuda.so") {
        "Install NVIDIA's driver"
    } else {
        "Check that it is a program for this machine"
    };
    Err(EnvironmentError(format!(
        "{} does not run:\n\n{why}\n\n{advice}, or {OWN}.",
        program.display()
    )))
}

/// A sentence with the devices that the program can use.
async fn devices(program: &Path) -> String {
    let mut found = match program::ask(Command::new(program).arg("--list-devices")).await {
        Ok(end) if end.is_success => end.lines,
        _ => return "It does not say which GPUs it can use.".to_owned(),
    };
    // A line is NAME, a tab and a description; other lines are of its log.
    found.retain(|line| line.starts_with("CUDA") || line.starts_with("Vulkan"));
    if found.is_empty() {
        return "It finds no GPU. Install the GPU's driver, and for Vulkan the package libvulkan1, before you use it.".to_owned();
    }
    format!("It can use: {}", found.join(", "))
}

/// Passes a download's progress on.
struct ArchiveWatcher<'w> {
    watcher: &'w dyn EnvironmentWatcher,
    bytes: Option<u64>,
}

impl DownloadWatcher for ArchiveWatcher<'_> {
    fn begun(&self, held: u64, _: u64) {
        self.grown(held);
    }

    fn grown(&self, held: u64) {
        self.watcher.grown(held, self.bytes);
    }

    fn checking(&self) {
        self.watcher.line("checking its SHA-256");
    }

    fn retrying(&self, error: &DownloadError, wait: Duration, retry: u32, retries_max: u32) {
        let wait = wait.as_secs_f64().ceil();
        self.watcher.line(&format!(
            "{error}; trying again in {wait:.0} s ({retry} of {retries_max})"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_build_has_an_asset_of_its_tag_for_linux() {
        for label in ["cuda12", "vulkan", "cpu"] {
            let found = published(label, ("linux", "x86_64")).unwrap();
            let commit = found.tag.rsplit('-').next().unwrap();
            assert!(found.asset.contains(commit), "{found:?}");
            assert!(
                found.asset.contains("-bin-Linux-") && found.asset.ends_with(".zip"),
                "{found:?}"
            );
        }
    }

    #[test]
    fn other_machines_are_told_what_to_do() {
        for platform in [
            ("macos", "aarch64"),
            ("windows", "x86_64"),
            ("linux", "aarch64"),
        ] {
            let error = published("vulkan", platform).unwrap_err().to_string();
            assert!(
                error.contains(platform.0) && error.contains("--sd-server PATH"),
                "{error}"
            );
        }
    }
}
