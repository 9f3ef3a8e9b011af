//! Where a service stores its data: the task store, the results in a folder or in S3, and unfinished
//! files; and how much of it one project may fill. A location without a setting is in the data folder.

use std::path::{Path, PathBuf};

use kinora_blobs::{S3Options, S3Variables};
use rustix::fs::statvfs;
use serde::Deserialize;
use toml::Value;

use super::Config;
use crate::failure::Failure;
use crate::folder::nearest_existing;

/// Maximum length of a signature, which may have to ask a time-stamp authority twice.
const SIGN_SECONDS_MAX: u32 = 600;

impl Config {
    /// The address of the task store.
    pub(crate) fn store_url(&self) -> String {
        if self.store.url.is_empty() {
            format!("sqlite:{}", self.data.join("kinora.db").display())
        } else {
            self.store.url.clone()
        }
    }

    /// The URL of the blob store. It may contain a secret; show people [`Self::results_shown`].
    pub(crate) fn results_url(&self) -> String {
        if self.results.url.is_empty() {
            self.data.join("results").display().to_string()
        } else {
            self.results.url.clone()
        }
    }

    /// The location of the results, for people and logs.
    pub(crate) fn results_shown(&self) -> String {
        kinora_blobs::display_location(&self.results_url())
    }

    /// The folder of unfinished files, with a subfolder for each process.
    pub(crate) fn scratch_folder(&self) -> PathBuf {
        if self.worker.scratch.as_os_str().is_empty() {
            self.data.join("work")
        } else {
            self.worker.scratch.clone()
        }
    }
}

/// How clients get results in S3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResultDelivery {
    /// Redirects if clients can be expected to reach S3; otherwise streams.
    Auto,
    /// Redirects to a signed S3 URL.
    Redirect,
    /// Streams results through the service.
    Stream,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct S3Settings {
    endpoint: String,
    public_endpoint: String,
    region: String,
    path_style: bool,
    allow_http: bool,
    ca_file: PathBuf,
}

impl Config {
    /// The options for results in S3. Reads the credentials from the process's variables.
    pub(crate) fn s3(&self) -> S3Options {
        let s3 = &self.results.s3;
        S3Options {
            endpoint: s3.endpoint.clone(),
            public_endpoint: s3.public_endpoint.clone(),
            region: s3.region.clone(),
            path_style: s3.path_style,
            allow_http: s3.allow_http,
            ca_file: (!s3.ca_file.as_os_str().is_empty()).then(|| s3.ca_file.clone()),
            variables: S3Variables::read(|name| std::env::var(name).ok()),
            ..S3Options::default()
        }
    }

    /// Whether to redirect clients to S3 for results.
    pub(crate) fn redirects_to_s3(&self) -> bool {
        let s3 = &self.results.s3;
        match self.results.delivery {
            ResultDelivery::Auto => {
                // Amazon's own endpoint is public. A configured one is often an internal host name
                // that clients cannot resolve, so it takes a public endpoint beside it.
                self.is_in_s3() && (s3.endpoint.is_empty() || !s3.public_endpoint.is_empty())
            }
            ResultDelivery::Redirect => true,
            ResultDelivery::Stream => false,
        }
    }

    fn is_in_s3(&self) -> bool {
        matches!(kinora_blobs::local_root(&self.results_url()), Ok(None))
    }

    pub(super) fn check_results(&self) -> Result<(), Failure> {
        kinora_blobs::local_root(&self.results_url())
            .map_err(|error| Failure::because("The setting results.url is invalid", error))?;
        if self.results.delivery == ResultDelivery::Redirect && !self.is_in_s3() {
            return Err(Failure::new(
                "The setting results.delivery cannot be 'redirect' when results are in a folder.",
            ));
        }
        self.check_sign_command()
    }

    fn check_sign_command(&self) -> Result<(), Failure> {
        let (command, seconds) = (
            &self.results.sign_command,
            self.results.sign_timeout_seconds,
        );
        if !(1..=SIGN_SECONDS_MAX).contains(&seconds) {
            return Err(Failure::new(format!(
                "The setting results.sign_timeout_seconds must be from 1 to {SIGN_SECONDS_MAX}."
            )));
        }
        let names = |placeholder| command.iter().skip(1).any(|one| one.contains(placeholder));
        if command.is_empty() || (names("{input}") && names("{output}")) {
            return Ok(());
        }
        Err(Failure::new(
            "The setting results.sign_command must have the arguments {input} and {output}, for the paths of the video \
             and of the signed video.",
        ))
    }
}

/// The default where the disk is larger than four times as much, or no disk of this machine.
const PROJECT_BYTES_MAX: u64 = 50_000_000_000;
/// The part of the disk that one project gets by default: 1/PART.
const PART: u64 = 4;
const AUTO: &str = "auto";

/// Maximum bytes of a project: a number, 0 for no bound, or `"auto"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) enum ProjectBytes {
    /// A quarter of the disk of the results, and at most 50 GB.
    Auto,
    Bytes(u64),
}

impl TryFrom<Value> for ProjectBytes {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let bytes = match value {
            Value::String(text) if text == AUTO => return Ok(Self::Auto),
            Value::Integer(bytes) => bytes.try_into().ok(),
            // From a variable.
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        bytes
            .map(Self::Bytes)
            .ok_or("expected a number of bytes, or \"auto\"")
    }
}

impl Config {
    /// Maximum bytes stored for one project; 0: no bound.
    pub(crate) fn project_bytes_max(&self) -> u64 {
        match self.quota.project_bytes_max {
            ProjectBytes::Bytes(bytes) => bytes,
            ProjectBytes::Auto => share_of_disk(self.results_disk_bytes()),
        }
    }

    /// The size of the disk of the results, if they are in a folder.
    pub(crate) fn results_disk_bytes(&self) -> Option<u64> {
        let folder = kinora_blobs::local_root(&self.results_url())
            .ok()
            .flatten()?;
        disk_bytes(&folder)
    }
}

fn disk_bytes(folder: &Path) -> Option<u64> {
    let disk = statvfs(nearest_existing(folder)?).ok()?;
    // statvfs(3) counts blocks in fragments (`f_frsize`); `f_bsize` is only the preferred size of a
    // read or write.
    Some(disk.f_blocks.saturating_mul(disk.f_frsize))
}

fn share_of_disk(disk_bytes: Option<u64>) -> u64 {
    let part = disk_bytes.map_or(PROJECT_BYTES_MAX, |bytes| bytes / PART);
    // 0 would be no bound.
    part.clamp(1, PROJECT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_reach_into_sections_of_sections() {
        let read = |told: &[(&str, &str)]| {
            let told: Vec<_> = told
                .iter()
                .map(|(name, text)| (name.to_string(), text.to_string()))
                .collect();
            Config::read(None, &told).map_err(|failure| failure.to_string())
        };
        let results = read(&[
            ("KINORA_RESULTS_URL", "s3://films/kinora"),
            ("KINORA_RESULTS_S3_ENDPOINT", "http://127.0.0.1:3900"),
            ("KINORA_RESULTS_S3_REGION", "garage"),
            ("KINORA_RESULTS_S3_PATH_STYLE", "false"),
            ("KINORA_RESULTS_S3_ALLOW_HTTP", "true"),
            ("KINORA_RESULTS_DELIVERY", "redirect"),
        ]);
        let results = results.unwrap().results;
        assert_eq!(results.s3.endpoint, "http://127.0.0.1:3900");
        assert_eq!(results.s3.region, "garage");
        assert!(!results.s3.path_style && results.s3.allow_http);
        assert_eq!(results.delivery, ResultDelivery::Redirect);
        for unknown in ["KINORA_RESULTS_S3_SECRET", "KINORA_RESULTS_S3"] {
            let error = read(&[(unknown, "x")]).unwrap_err();
            assert!(error.contains("names no setting"), "{error}");
        }
    }

    #[test]
    fn clients_are_sent_to_s3_where_they_can_be_expected_to_reach_it() {
        let mut config = Config::defaults();
        assert!(!config.redirects_to_s3());
        config.results.url = "s3://films".to_owned();
        assert!(config.redirects_to_s3(), "AWS");
        config.results.s3.endpoint = "https://garage.internal".to_owned();
        assert!(!config.redirects_to_s3());
        config.results.s3.public_endpoint = "https://s3.example.com".to_owned();
        assert!(config.redirects_to_s3());
        config.results.delivery = ResultDelivery::Stream;
        assert!(!config.redirects_to_s3());
    }
}

#[cfg(test)]
mod quota_tests {
    use super::*;

    #[test]
    fn a_project_gets_a_quarter_of_a_small_disk_and_50_gb_of_any_other() {
        assert_eq!(share_of_disk(Some(40_000_000_000)), 10_000_000_000);
        assert_eq!(share_of_disk(Some(4_000_000_000_000)), PROJECT_BYTES_MAX);
        assert_eq!(share_of_disk(None), PROJECT_BYTES_MAX);
        assert_eq!(share_of_disk(Some(0)), 1);
    }

    #[test]
    fn the_disk_is_that_of_the_results() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::defaults();
        config.data = folder.path().join("not/yet/there");
        let disk = config.results_disk_bytes().unwrap();
        assert_eq!(config.project_bytes_max(), share_of_disk(Some(disk)));
        config.results.url = "s3://bucket/results".to_owned();
        assert_eq!(config.results_disk_bytes(), None);
        assert_eq!(config.project_bytes_max(), PROJECT_BYTES_MAX);
    }

    #[test]
    fn a_number_replaces_the_part_of_the_disk() {
        let read = |text: &str| -> Result<ProjectBytes, String> {
            let value = Value::String(text.to_owned());
            value
                .try_into()
                .map_err(|error: toml::de::Error| error.to_string())
        };
        assert_eq!(read(AUTO), Ok(ProjectBytes::Auto));
        assert_eq!(read("0"), Ok(ProjectBytes::Bytes(0)));
        assert_eq!(
            ProjectBytes::try_from(Value::Integer(7)).ok(),
            Some(ProjectBytes::Bytes(7))
        );
        for wrong in ["half", "-1", ""] {
            assert!(
                read(wrong).unwrap_err().contains("a number of bytes"),
                "{wrong}"
            );
        }
    }
}
