//! Which programs an engine can need, how to prepare them, and what is ready in the end.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use kinora_http_download::DownloadOptions;
use url::Url;

/// Which programs an engine runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvironmentKind {
    /// Python with diffusers and the package `kinora_engine`.
    Diffusers,
    /// The server of stable-diffusion.cpp.
    SdServer(SdServerBuild),
}

/// Which build of `sd-server`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SdServerBuild {
    /// For NVIDIA's GPUs.
    Cuda12,
    /// For the GPUs of all makers.
    Vulkan,
    /// Without a GPU.
    Cpu,
    /// The operator's own.
    Given(PathBuf),
}

/// How to prepare an environment.
#[derive(Clone, Debug)]
pub struct EnvironmentOptions {
    /// Address of the API that lists releases, such as `https://api.github.com`.
    pub releases: Url,
    /// How to download; its certificates are trusted for the API too.
    pub download: DownloadOptions,
}

/// Receives the progress of the preparation. The calls must return at once.
pub trait EnvironmentWatcher: Send + Sync {
    /// A step begins, in words.
    fn step(&self, text: &str);

    /// The result of a step, which a reader should still see in the end: a version, or that no GPU was found.
    fn note(&self, text: &str);

    /// The last line that a program printed.
    fn line(&self, text: &str);

    /// The environment's folder, or its archive, now has this many bytes, of `whole` if that is known.
    fn grown(&self, bytes: u64, whole: Option<u64>);
}

/// Programs that are ready.
#[derive(Clone, Debug)]
pub struct PreparedEnvironment {
    /// The folder of the environment.
    pub folder: PathBuf,
    /// For diffusers the complete command of an engine; for `sd-server` its path.
    pub command: Vec<String>,
    /// Variables of the process.
    pub environment: BTreeMap<String, String>,
}

/// Why an environment is not ready: what happened, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EnvironmentError(pub(crate) String);

impl EnvironmentError {
    /// A failure to read or write `path`.
    pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> Self {
        |error| {
            let path = path.display();
            Self(format!(
                "{path}: {error}. Give this user access to it, and check that its disk is not full."
            ))
        }
    }
}
