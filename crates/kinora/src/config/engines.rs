//! The settings of engines beside the embedded one: `[[engines]]`. Whoever names none has none.

mod hosted;
mod remote;

use std::time::Duration;

use serde::Deserialize;

use crate::failure::Failure;
pub(crate) use hosted::{Diffusion, Host, Storyboard};
pub(crate) use remote::{Remote, Undecodable};

/// A client of other servers ends by itself after its silence: a last call may take so long.
const REMOTE_ENDS_WITHIN: Duration = Duration::from_mins(3);

/// One engine, by its kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Engine {
    /// Servers that speak `/v1/videos`.
    Remote(Remote),
    /// The embedded engine in a process of its own.
    Storyboard(Storyboard),
    /// Open weights, in a process of their own.
    Diffusion(Box<Diffusion>),
}

impl Engine {
    /// What models call it.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Remote(remote) => &remote.name,
            Self::Storyboard(storyboard) => &storyboard.name,
            Self::Diffusion(diffusion) => &diffusion.name,
        }
    }

    /// How many tasks it takes at a time; `None`: as many as there are slots.
    pub(crate) fn places(&self) -> Option<usize> {
        let host = match self {
            Self::Remote(_) => return None,
            Self::Storyboard(storyboard) => storyboard.host,
            Self::Diffusion(diffusion) => diffusion.host,
        };
        Some(host.processes as usize)
    }

    /// A run of it that gives no sign of life for so long is given up.
    pub(crate) fn silence_max(&self) -> Duration {
        match self {
            Self::Remote(remote) => seconds(remote.silence_seconds) + REMOTE_ENDS_WITHIN,
            Self::Storyboard(storyboard) => seconds(storyboard.host.silence_seconds),
            Self::Diffusion(diffusion) => seconds(diffusion.host.silence_seconds),
        }
    }

    /// What no type says.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let name = self.name();
        if name.is_empty() || name == "storyboard" {
            return Err(wrong(name, "its name is taken or empty"));
        }
        match self {
            Self::Remote(remote) => remote.check(),
            Self::Storyboard(storyboard) => {
                storyboard.settings().check()?;
                check_host(name, storyboard.host)
            }
            Self::Diffusion(diffusion) => {
                diffusion.model()?;
                check_host(name, diffusion.host)
            }
        }
    }
}

fn check_host(name: &str, host: Host) -> Result<(), Failure> {
    for (field, value) in [
        ("processes", host.processes),
        ("open_seconds", host.open_seconds),
        ("silence_seconds", host.silence_seconds),
    ] {
        if value == 0 {
            return Err(wrong(name, &format!("host.{field} must be at least 1")));
        }
    }
    Ok(())
}

fn wrong(name: &str, what: &str) -> Failure {
    Failure::new(format!("The engine '{name}': {what}."))
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::Config;

    #[test]
    fn every_ready_configuration_is_one() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
        let mut ready = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let config = Config::read(Some(&path), &[]).unwrap();
            config.check().unwrap();
            for model in &config.models {
                let engine = config.engine(&model.engine);
                assert!(engine.is_some(), "{}: {}", path.display(), model.id);
            }
            ready += 1;
        }
        assert!(ready > 10);
    }
}
