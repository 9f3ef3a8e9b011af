//! The devices that engines share (`[[devices]]`), and how many tasks a worker runs at a time
//! (`worker.slots`), with the seats of engines that this leaves without work.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;

use super::{Config, DeviceShare, EngineSettings};
use crate::failure::Failure;

/// A device whose memory engines share.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeviceSettings {
    /// The name by which engines refer to it.
    pub(crate) name: String,
    /// Memory that all loaded engines together may use.
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

impl DeviceSettings {
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
    pub(crate) fn engines_on(
        &self,
        device: &DeviceSettings,
    ) -> impl Iterator<Item = (&EngineSettings, &DeviceShare)> {
        let lodged = self
            .engines
            .iter()
            .filter_map(|engine| Some((engine, engine.device_share.as_ref()?)));
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
            for (engine, lodging) in self.engines_on(device) {
                let (need, budget) = (lodging.memory_megabytes, device.memory_megabytes);
                if need > budget {
                    return Err(Failure::new(format!(
                        "The engine '{}' needs {need} megabytes, and the device '{}' has {budget}.",
                        engine.name, device.name
                    )));
                }
            }
        }
        for engine in &self.engines {
            // Without this check a typo in a device's name would let its engine load beside others
            // without a bound.
            if let Some(share) = &engine.device_share
                && !names.contains(&share.device)
            {
                return Err(Failure::new(format!(
                    "The engine '{}': there is no device '{}' in [[devices]].",
                    engine.name, share.device
                )));
            }
        }
        Ok(())
    }
}

/// The automatic number is at least this, so that one project does not hold the only slot.
const AUTOMATIC_MIN: u32 = 2;

impl Config {
    /// Maximum number of concurrent tasks of this process: `worker.slots`, or one for each seat of
    /// the engines.
    pub(crate) fn slots(&self) -> u32 {
        // A slot per seat keeps every device busy: with fewer slots some could never get a task,
        // and with more, tasks would hold slots while they wait for a seat.
        match self.worker.slots {
            0 => self.seats().max(AUTOMATIC_MIN),
            slots => slots,
        }
    }

    /// Number of seats of all engines that models use.
    fn seats(&self) -> u32 {
        let seats = self.serving_engines().map(|engine| engine.seats());
        seats.fold(0, u32::saturating_add)
    }

    /// The engines that models use, as far as this process knows them.
    pub(crate) fn serving_engines(&self) -> impl Iterator<Item = EngineSettings> {
        let names: BTreeSet<&str> = self.models.iter().map(|model| &*model.engine).collect();
        names.into_iter().filter_map(|name| self.engine(name).ok())
    }

    /// What to do about each engine with more seats than slots.
    pub(crate) fn seat_advice(&self) -> Vec<String> {
        let slots = self.slots();
        let engines = self.serving_engines();
        let engines = engines.filter(|engine| engine.seats() > slots);
        let advice = engines.map(|engine| {
            let (name, seats, unused) = (&engine.name, engine.seats(), engine.seats() - slots);
            let named = match engine.seat_names().as_slice() {
                [] => String::new(),
                names => format!(" ({})", names.join(", ")),
            };
            format!(
                "{name} has {seats} seats{named} and worker.slots is {slots}: at any time {unused} of them have no task; \
                 set worker.slots to 0, or to at least {seats}"
            )
        });
        advice.collect()
    }

    /// Logs the seats that can get no task, if this process runs tasks.
    pub(crate) fn log_seat_advice(&self) {
        if self.worker.enabled {
            for advice in self.seat_advice() {
                tracing::warn!("{advice}");
            }
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
            .engines_on(device)
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
                "The engine 'own': memory_megabytes: invalid type",
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

#[cfg(test)]
mod slots_tests {
    use super::*;

    const EIGHT: &str = "devices = [\"0\", \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"GPU-7\"]\n";
    const DESCRIBE: &str = "describe = { fps = 16, features = { text_to_video = true } }\n";

    fn config(worker: &str, engines: &[(&str, &str)]) -> Config {
        let mut text = worker.to_owned();
        for (name, settings) in engines {
            text += &format!("[[engines]]\nname = \"{name}\"\n{settings}\n");
        }
        for (name, _) in engines {
            text += &format!("[[models]]\nid = \"{name}\"\nengine = \"{name}\"\n");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kinora.toml");
        std::fs::write(&path, text).unwrap();
        let config = Config::read(Some(&path), &[]).unwrap();
        config.check().unwrap();
        config
    }

    fn command(more: &str) -> String {
        format!("kind = \"process\"\ncommand = [\"engine\"]\n{more}{DESCRIBE}")
    }

    #[test]
    fn the_automatic_number_follows_from_the_seats_of_the_engines() {
        let slots = |engines: &[(&str, &str)]| config("", engines).slots();
        let (one, eight) = (command(""), command(EIGHT));
        let (pair, boxed) = (
            command("host = { processes = 3 }\n"),
            "kind = \"storyboard\"",
        );
        let servers = "kind = \"remote\"\ndialect = \"kinora\"\n\
                       base_urls = [\"http://a/v1\", \"http://b/v1\", \"http://c/v1\"]";
        assert_eq!(Config::defaults().slots(), 2);
        assert_eq!(slots(&[("one", &one)]), 2);
        assert_eq!(slots(&[("eight", &eight)]), 8);
        assert_eq!(slots(&[("pair", &pair)]), 3);
        assert_eq!(slots(&[("servers", servers)]), 3);
        assert_eq!(
            slots(&[("eight", &eight), ("boxed", boxed), ("servers", servers)]),
            12
        );
    }

    #[test]
    fn engines_without_models_and_models_without_engines_have_no_seats() {
        let mut config = config("", &[("eight", &command(EIGHT))]);
        config.models[0].engine = "storyboard".to_owned();
        assert_eq!((config.seats(), config.slots()), (1, 2));
        config.models[0].engine = "elsewhere".to_owned();
        assert_eq!((config.seats(), config.slots()), (0, 2));
    }

    #[test]
    fn two_models_of_one_engine_share_its_seats() {
        let mut config = config("", &[("eight", &command(EIGHT))]);
        let mut second = config.models[0].clone();
        second.id = "second".to_owned();
        config.models.push(second);
        assert_eq!(config.slots(), 8);
    }

    #[test]
    fn seats_without_a_slot_are_named() {
        let engines = [("eight", &*command(EIGHT))];
        let surplus = |worker: &str| config(worker, &engines).seat_advice().pop();
        assert_eq!(surplus(""), None);
        assert_eq!(surplus("[worker]\nslots = 0\n"), None);
        assert_eq!(surplus("[worker]\nslots = 8\n"), None);
        let advice = surplus("[worker]\nslots = 2\n").unwrap();
        let expected = "eight has 8 seats (0, 1, 2, 3, 4, 5, 6, GPU-7) and worker.slots is 2: at any time 6 of them have no task;";
        assert!(advice.starts_with(expected), "{advice}");
    }
}
