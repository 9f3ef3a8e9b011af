//! `worker.slots`: how many tasks a worker runs at a time, and the seats of engines that this leaves without work.

use std::collections::BTreeSet;

use super::{Config, Engine};

/// The automatic number is at least this, so that one project does not hold the only slot.
const AUTOMATIC_MIN: u32 = 2;

/// An engine with more seats than the worker has slots.
#[derive(Debug)]
pub(crate) struct Surplus {
    pub(crate) engine: Engine,
    pub(crate) slots: u32,
}

impl Surplus {
    /// Names the seats, and says what to do.
    pub(crate) fn advice(&self) -> String {
        let (name, seats, slots) = (&self.engine.name, self.engine.seats(), self.slots);
        let unused = seats.saturating_sub(slots);
        let named = match self.engine.seat_names().as_slice() {
            [] => String::new(),
            names => format!(" ({})", names.join(", ")),
        };
        format!(
            "{name} has {seats} seats{named} and worker.slots is {slots}: at any time {unused} of them have no task; \
             set worker.slots to 0, or to at least {seats}"
        )
    }
}

impl Config {
    /// Maximum number of tasks that this process runs at a time: `worker.slots`, or one for each seat of the engines.
    pub(crate) fn slots(&self) -> u32 {
        match self.worker.slots {
            0 => self.seats().max(AUTOMATIC_MIN),
            slots => slots,
        }
    }

    /// Number of seats of all engines that models use.
    pub(crate) fn seats(&self) -> u32 {
        let seats = self.serving_engines().map(|engine| engine.seats());
        seats.fold(0, u32::saturating_add)
    }

    /// The engines that models use, as far as this process knows them.
    pub(crate) fn serving_engines(&self) -> impl Iterator<Item = Engine> {
        let names: BTreeSet<&str> = self.models.iter().map(|model| &*model.engine).collect();
        names.into_iter().filter_map(|name| self.engine(name).ok())
    }

    /// The engines with more seats than slots.
    pub(crate) fn surpluses(&self) -> Vec<Surplus> {
        let slots = self.slots();
        self.serving_engines()
            .filter(|engine| engine.seats() > slots)
            .map(|engine| Surplus { engine, slots })
            .collect()
    }

    /// Logs the seats that can get no task, if this process runs tasks.
    pub(crate) fn warn_of_surpluses(&self) {
        if self.worker.enabled {
            for surplus in self.surpluses() {
                tracing::warn!("{}", surplus.advice());
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
        let surplus = |worker: &str| {
            let mut found = config(worker, &engines).surpluses().into_iter();
            found.next().map(|one| one.advice())
        };
        assert_eq!(surplus(""), None);
        assert_eq!(surplus("[worker]\nslots = 0\n"), None);
        assert_eq!(surplus("[worker]\nslots = 8\n"), None);
        let advice = surplus("[worker]\nslots = 2\n").unwrap();
        let expected = "eight has 8 seats (0, 1, 2, 3, 4, 5, 6, GPU-7) and worker.slots is 2: at any time 6 of them have no task;";
        assert!(advice.starts_with(expected), "{advice}");
    }
}
