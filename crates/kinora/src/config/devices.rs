//! The devices that engines share: `[[devices]]`.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;

use super::{Config, Engine, Lodging};
use crate::failure::Failure;

/// A device whose memory engines share.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Device {
    /// The name by which engines refer to it.
    pub(crate) name: String,
    /// What all loaded engines together may need.
    pub(crate) memory_megabytes: u32,
    #[serde(default = "idle_seconds")]
    idle_seconds: u32,
    #[serde(default = "age_seconds_max")]
    age_seconds_max: u32,
}

const fn idle_seconds() -> u32 {
    300
}

const fn age_seconds_max() -> u32 {
    120
}

impl Device {
    /// How long an engine stays without a task. `None`: until another needs its room.
    pub(crate) fn idle_max(&self) -> Option<Duration> {
        let idle = Some(self.idle_seconds).filter(|seconds| *seconds > 0);
        idle.map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// How long tasks of loaded engines go before those of another.
    pub(crate) fn age_max(&self) -> Duration {
        Duration::from_secs(self.age_seconds_max.into())
    }

    fn check(&self) -> Result<(), String> {
        if self.name.is_empty() {
            return Err("A device has an empty `name`.".to_owned());
        }
        for (key, value) in [
            ("memory_megabytes", self.memory_megabytes),
            ("age_seconds_max", self.age_seconds_max),
        ] {
            if value == 0 {
                return Err(format!(
                    "The device '{}': {key} must be at least 1.",
                    self.name
                ));
            }
        }
        Ok(())
    }
}

impl Config {
    /// The engines that share this device.
    pub(crate) fn lodged(&self, device: &Device) -> impl Iterator<Item = (&Engine, &Lodging)> {
        let lodged = self
            .engines
            .iter()
            .filter_map(|engine| Some((engine, engine.lodging.as_ref()?)));
        let name = device.name.clone();
        lodged.filter(move |(_, lodging)| lodging.device == name)
    }

    pub(super) fn check_devices(&self) -> Result<(), Failure> {
        let mut names = BTreeSet::new();
        for device in &self.devices {
            device.check().map_err(Failure::new)?;
            if !names.insert(&device.name) {
                return Err(Failure::new(format!(
                    "Two devices have the name '{}'.",
                    device.name
                )));
            }
            for (engine, lodging) in self.lodged(device) {
                let (need, budget) = (lodging.memory_megabytes, device.memory_megabytes);
                if need > budget {
                    return Err(Failure::new(format!(
                        "The engine '{}' needs {need} megabytes, and the device '{}' has {budget}.",
                        engine.name, device.name
                    )));
                }
            }
        }
        let lodgings = self.engines.iter().filter_map(|engine| {
            let lodging = engine.lodging.as_ref()?;
            (!names.contains(&lodging.device)).then_some((engine, lodging))
        });
        match lodgings.into_iter().next() {
            None => Ok(()),
            Some((engine, lodging)) => Err(Failure::new(format!(
                "The engine '{}': there is no device '{}' in [[devices]].",
                engine.name, lodging.device
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: &str = "[[devices]]\nname = \"gpu0\"\nmemory_megabytes = 80000\n";
    const ENGINE: &str = "[[engines]]\nname = \"own\"\nkind = \"process\"\ncommand = [\"engine\"]\n\
                          describe = { fps = 16, features = { text_to_video = true } }\n";
    const SHARES: &str = "device = \"gpu0\"\nmemory_megabytes = 50000\n";

    fn checked(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kinora.toml");
        std::fs::write(&path, text).unwrap();
        let config = Config::read(Some(&path), &[]).map_err(|failure| failure.to_string())?;
        config.check().map_err(|failure| failure.to_string())?;
        Ok(config)
    }

    #[test]
    fn a_device_has_the_engines_that_name_it() {
        let other = ENGINE.replace("own", "other");
        let config = checked(&format!("{DEVICE}{ENGINE}{SHARES}{other}")).unwrap();
        let device = &config.devices[0];
        let names: Vec<&str> = config
            .lodged(device)
            .map(|(engine, _)| &*engine.name)
            .collect();
        assert_eq!(names, ["own"]);
        assert_eq!(device.idle_max(), Some(Duration::from_secs(300)));
        assert_eq!(device.age_max(), Duration::from_secs(120));
        let never = checked(&format!("{DEVICE}idle_seconds = 0\n")).unwrap();
        assert_eq!(never.devices[0].idle_max(), None);
    }

    #[test]
    fn what_is_wrong_with_a_device_is_told_with_both_names() {
        let shares = format!("{DEVICE}{ENGINE}{SHARES}");
        let film = "[[engines]]\nname = \"far\"\nkind = \"remote\"\ndialect = \"kinora\"\n\
                    base_urls = [\"http://10.0.0.7/v1\"]\n";
        for (text, told) in [
            (
                shares.replace("50000", "80001"),
                "The engine 'own' needs 80001 megabytes, and the device 'gpu0' has 80000.",
            ),
            (
                format!("{ENGINE}{SHARES}"),
                "The engine 'own': there is no device 'gpu0' in [[devices]].",
            ),
            (
                format!("{DEVICE}{DEVICE}"),
                "Two devices have the name 'gpu0'.",
            ),
            (DEVICE.replace("gpu0", ""), "A device has an empty `name`."),
            (
                DEVICE.replace("80000", "0"),
                "The device 'gpu0': memory_megabytes must be at least 1.",
            ),
            (
                format!("{DEVICE}age_seconds_max = 0"),
                "The device 'gpu0': age_seconds_max must be at least 1.",
            ),
            (format!("{DEVICE}colour = 1"), "unknown field `colour`"),
            (
                shares.replace("memory_megabytes = 50000", ""),
                "The engine 'own': it shares a device, so it needs `memory_megabytes`",
            ),
            (
                shares.replace("device = \"gpu0\"", ""),
                "name it with `device`, or set host.memory_megabytes",
            ),
            (
                shares.replace("50000", "0"),
                "The engine 'own': memory_megabytes must be at least 1.",
            ),
            (
                shares.replace("50000", "\"x\""),
                "`device` must be a string and `memory_megabytes` an integer",
            ),
            (
                format!("{shares}devices = [\"0\", \"1\"]"),
                "The engine 'own': it has several `devices` of its own",
            ),
            (
                format!("{DEVICE}{film}{SHARES}"),
                "The engine 'far': its servers cannot be told to leave a device",
            ),
        ] {
            let error = checked(&text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
        checked(&format!("{shares}devices = [\"0\"]")).unwrap();
    }
}
