//! `quota.project_bytes_max`: how much one project may store, by default in proportion to the disk.

use std::fmt;
use std::path::Path;

use rustix::fs::statvfs;
use serde::Deserialize;
use toml::Value;

use super::Config;
use crate::folder::nearest_existing;

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

/// What a setting must be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoBytes;

impl fmt::Display for NoBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a number of bytes, or \"auto\"")
    }
}

impl TryFrom<Value> for ProjectBytes {
    type Error = NoBytes;

    fn try_from(value: Value) -> Result<Self, NoBytes> {
        let bytes = match value {
            Value::String(text) if text == AUTO => return Ok(Self::Auto),
            Value::Integer(bytes) => bytes.try_into().ok(),
            // From a variable.
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        bytes.map(Self::Bytes).ok_or(NoBytes)
    }
}

impl Config {
    /// Maximum bytes stored for one project; 0: no bound.
    pub(crate) fn project_bytes_max(&self) -> u64 {
        match self.quota.project_bytes_max {
            ProjectBytes::Bytes(bytes) => bytes,
            ProjectBytes::Auto => part_of(self.results_disk_bytes()),
        }
    }

    /// The size of the disk of the results, if they are in a folder.
    pub(crate) fn results_disk_bytes(&self) -> Option<u64> {
        let folder = kinora_blobs::root(&self.results_url()).ok().flatten()?;
        disk_bytes(&folder)
    }
}

fn disk_bytes(folder: &Path) -> Option<u64> {
    let disk = statvfs(nearest_existing(folder)?).ok()?;
    Some(disk.f_blocks.saturating_mul(disk.f_frsize))
}

fn part_of(disk_bytes: Option<u64>) -> u64 {
    let part = disk_bytes.map_or(PROJECT_BYTES_MAX, |bytes| bytes / PART);
    // 0 would be no bound.
    part.clamp(1, PROJECT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_gets_a_quarter_of_a_small_disk_and_50_gb_of_any_other() {
        assert_eq!(part_of(Some(40_000_000_000)), 10_000_000_000);
        assert_eq!(part_of(Some(4_000_000_000_000)), PROJECT_BYTES_MAX);
        assert_eq!(part_of(None), PROJECT_BYTES_MAX);
        assert_eq!(part_of(Some(0)), 1);
    }

    #[test]
    fn the_disk_is_that_of_the_results() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::defaults();
        config.data = folder.path().join("not/yet/there");
        let disk = config.results_disk_bytes().unwrap();
        assert_eq!(config.project_bytes_max(), part_of(Some(disk)));
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
