//! Environments made by the system's Python and pip out of stand-in packages, and out of stand-in archives. Nothing comes from
//! the network.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use kinora_http_download::DownloadOptions;
use kinora_testkit::release_server::{ReleaseServer, SD_SERVER, TransferFault, archive};
use kinora_testkit::wheels::write_wheels;
use tempfile::TempDir;
use tokio::sync::Notify;
use url::Url;

use super::*;

/// A PyTorch that has a GPU.
const TORCH: &str = "__version__ = '2'\n\
    class cuda:\n    is_available = staticmethod(lambda: True)\n    get_device_name = staticmethod(lambda: 'a stand-in')\n";

#[derive(Default)]
struct Progress {
    steps: Mutex<Vec<String>>,
    /// Notified by each line.
    lines: Notify,
}

impl Progress {
    fn steps(&self) -> String {
        self.steps.lock().unwrap().join("\n")
    }
}

impl EnvironmentWatcher for Progress {
    fn step(&self, text: &str) {
        self.steps.lock().unwrap().push(text.to_owned());
    }

    fn note(&self, text: &str) {
        self.step(text);
    }

    fn line(&self, _: &str) {
        self.lines.notify_one();
    }

    fn grown(&self, _: u64, _: Option<u64>) {}
}

fn context(variables: [(&str, &str); 3]) -> ProgramContext {
    ProgramContext {
        variables: variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..ProgramContext::inherited()
    }
}

/// Settings of pip that find packages in `wheels` only.
fn offline(wheels: &Path) -> ProgramContext {
    let wheels = wheels.to_str().unwrap();
    context([
        ("PIP_NO_INDEX", "1"),
        ("PIP_FIND_LINKS", wheels),
        ("PIP_INDEX_URL", ""),
    ])
}

/// Settings of pip that look for packages at an index that never answers.
fn stalled(index: &TcpListener) -> ProgramContext {
    let url = format!("http://{}/simple", index.local_addr().unwrap());
    context([
        ("PIP_NO_INDEX", "0"),
        ("PIP_FIND_LINKS", ""),
        ("PIP_INDEX_URL", &url),
    ])
}

#[tokio::test]
async fn an_interrupted_python_environment_is_completed_and_a_broken_one_made_anew() {
    let (engines, wheels) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let modules = [("torch", TORCH), ("diffusers", "__version__ = '1'\n")];
    write_wheels(wheels.path(), venv::REQUIREMENTS, &modules);
    let (context, progress) = (offline(wheels.path()), Progress::default());
    let entries = fs::read_dir(wheels.path()).unwrap().flatten();
    let ftfy = entries
        .map(|entry| entry.path())
        .find(|path| path.to_str().unwrap().contains("/ftfy-"));
    let (ftfy, aside) = (ftfy.unwrap(), wheels.path().join("aside"));

    // In the middle of pip's work.
    let index = TcpListener::bind("127.0.0.1:0").unwrap();
    let stalled = stalled(&index);
    tokio::select! {
        done = prepare_diffusers(engines.path(), &stalled, &progress) => panic!("{done:?}"),
        () = progress.lines.notified() => {}
    }
    let folder = engines.path().join(venv::folder_name());
    assert!(folder.join("venv/bin/python").exists() && !folder.join("ready").exists());
    let made = |folder: &Path| fs::metadata(folder.join("venv/pyvenv.cfg")).unwrap().ino();
    let first = made(&folder);

    // A version is missing.
    fs::rename(&ftfy, &aside).unwrap();
    let error = prepare_diffusers(engines.path(), &context, &progress)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("ftfy==") && error.contains("The package index lacks this version"),
        "{error}"
    );
    assert!(!folder.join("ready").exists());

    // It goes on with the same environment.
    fs::rename(&aside, &ftfy).unwrap();
    let prepared = prepare_diffusers(engines.path(), &context, &progress)
        .await
        .unwrap();
    assert_eq!((&prepared.folder, made(&folder)), (&folder, first));
    assert!(
        progress
            .steps()
            .ends_with("PyTorch 2 and diffusers 1; GPU: a stand-in"),
        "{}",
        progress.steps()
    );
    let mut command = tokio::process::Command::new(&prepared.command[0]);
    command
        .args(["-m", "kinora_engine", "--help"])
        .envs(&prepared.environment);
    let end = program::ask(&mut command).await.unwrap();
    assert!(
        end.text().contains("usage: python -m kinora_engine"),
        "{end:?}"
    );

    // Ready: nothing is installed again. Then the system's Python moves, and with it what the environment links to.
    drop(wheels);
    prepare_diffusers(engines.path(), &context, &progress)
        .await
        .unwrap();
    fs::remove_file(folder.join("venv/bin/python")).unwrap();
    let error = prepare_diffusers(engines.path(), &context, &progress)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("could not be installed"),
        "{error}"
    );
    assert!(folder.join("venv/bin/python").exists() && !folder.join("ready").exists());
}

/// A server with the pinned release of the build for processors, whose archive has these bytes.
struct Published {
    server: ReleaseServer,
    engines: TempDir,
}

impl Published {
    fn new(bytes: Vec<u8>) -> Self {
        let server = ReleaseServer::start();
        let build = build();
        server.publish(&build.repository, &build.tag, &build.asset, bytes);
        Self {
            server,
            engines: tempfile::tempdir().unwrap(),
        }
    }

    fn options(&self) -> EnvironmentOptions {
        EnvironmentOptions {
            releases: Url::parse(&self.server.base_url()).unwrap(),
            download: DownloadOptions {
                stall_limit: Duration::from_secs(60),
                retries_max: 5,
                first_wait: Duration::from_secs(1),
                token: None,
                roots_pem: Vec::new(),
            },
        }
    }

    async fn prepare(&self) -> Result<PreparedEnvironment, String> {
        let places = Places {
            weights: PathBuf::new(),
            engines: self.engines.path().to_owned(),
        };
        let kind = EnvironmentKind::SdServer(SdServerBuild::Cpu);
        let options = self.options();
        let prepared = prepare_environment(&kind, &places, &options, &Progress::default()).await;
        prepared.map_err(|error| error.to_string())
    }

    /// The error of a preparation, which leaves nothing that counts as ready.
    async fn refusal(&self) -> String {
        let error = self.prepare().await.unwrap_err();
        let folders = fs::read_dir(self.engines.path()).unwrap().flatten();
        for folder in folders {
            assert!(!folder.path().join("ready").exists(), "{error}");
        }
        assert!(error.contains("--sd-server PATH"), "{error}");
        error
    }
}

fn build() -> release::ServerBuild {
    sd_server::published("cpu", ("linux", "x86_64")).unwrap()
}

fn good() -> Vec<u8> {
    archive([
        ("build/sd-server", 0o755, SD_SERVER),
        ("build/LICENSE", 0o644, b"MIT"),
    ])
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod servers {
    use super::*;

    #[tokio::test]
    async fn a_broken_download_goes_on_and_a_ready_server_is_not_fetched_again() {
        let published = Published::new(good());
        published
            .server
            .fail(".zip", TransferFault::BreakAfter(100), 1);
        let prepared = published.prepare().await.unwrap();
        let program = Path::new(&prepared.command[0]);
        assert!(program.starts_with(&prepared.folder) && program.ends_with("build/sd-server"));
        let requests = published.server.requests();
        let mut ranges = requests
            .iter()
            .filter_map(|request| request.header("range"));
        assert_eq!(ranges.next_back(), Some("bytes=100-"));
        published.prepare().await.unwrap();
        assert_eq!(published.server.requests().len(), requests.len());
        // The archive itself is gone.
        assert!(!published.engines.path().join(build().asset).exists());
        // A program that was removed is fetched again.
        fs::remove_file(program).unwrap();
        published.prepare().await.unwrap();
        assert!(published.server.requests().len() > requests.len());
    }

    #[tokio::test]
    async fn only_the_published_bytes_are_used() {
        let published = Published::new(good());
        published.server.fail(".zip", TransferFault::WrongBytes, 1);
        let error = published.refusal().await;
        assert!(error.contains("SHA-256"), "{error}");
        published.server.omit_digests();
        let error = published.refusal().await;
        assert!(error.contains("has no SHA-256"), "{error}");
    }

    #[tokio::test]
    async fn an_unusable_archive_or_release_says_what_to_do() {
        let script: &[u8] = b"#!/bin/sh\necho 'version GLIBC_2.38 not found' >&2\nexit 1\n";
        for (bytes, expected) in [
            (
                archive([("sd-cli", 0o755, SD_SERVER)]),
                "it has no file sd-server",
            ),
            (b"<html>".to_vec(), "it is damaged"),
            (
                archive([("sd-server", 0o755, script)]),
                "glibc 2.38 is that of",
            ),
        ] {
            let published = Published::new(bytes);
            let error = published.refusal().await;
            assert!(error.contains(expected), "{error}");
        }
        let published = Published::new(good());
        published
            .server
            .fail(&build().tag, TransferFault::Status(403), 1);
        let error = published.refusal().await;
        assert!(error.contains("Try again in an hour"), "{error}");
        let without = Published {
            server: ReleaseServer::start(),
            engines: tempfile::tempdir().unwrap(),
        };
        let error = without.refusal().await;
        assert!(error.contains("is gone. Update Kinora"), "{error}");
        without
            .server
            .publish(&build().repository, &build().tag, "other.zip", Vec::new());
        let error = without.refusal().await;
        assert!(error.contains("has no file"), "{error}");
    }
}

#[tokio::test]
async fn a_server_of_the_operator_is_only_started_once() {
    let published = Published::new(good());
    let path = published.engines.path().join("own");
    fs::write(&path, SD_SERVER).unwrap();
    let places = Places {
        weights: PathBuf::new(),
        engines: published.engines.path().to_owned(),
    };
    let kind = EnvironmentKind::SdServer(SdServerBuild::Given(path.clone()));
    let progress = Progress::default();
    let refused = prepare_environment(&kind, &places, &published.options(), &progress).await;
    assert!(refused.unwrap_err().to_string().contains("does not run"));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&path, mode).unwrap();
    let prepared = prepare_environment(&kind, &places, &published.options(), &progress).await;
    assert_eq!(prepared.unwrap().command, [path.to_str().unwrap()]);
    assert!(progress.steps().contains("version stand-in"));
    assert!(published.server.requests().is_empty());
}
