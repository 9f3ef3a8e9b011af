//! Whether every seat of the engines can get a task.

use super::finding::Finding;
use crate::config::Config;
use crate::config::slots::Surplus;

/// The number of slots, and the engines that have more seats. `None`: this process runs no tasks.
pub(super) fn slots(config: &Config) -> Option<Finding> {
    if !config.worker.enabled {
        return None;
    }
    let surpluses = config.surpluses();
    if !surpluses.is_empty() {
        let advice: Vec<String> = surpluses.iter().map(Surplus::advice).collect();
        return Some(Finding::Note(advice.join("; ")));
    }
    let engines = config
        .serving_engines()
        .map(|engine| format!("{} {}", engine.name, engine.seats()));
    let engines: Vec<String> = engines.collect();
    Some(Finding::Good(format!(
        "{}; seats: {}",
        config.slots(),
        engines.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_that_never_work_are_noted() {
        let mut config = Config::defaults();
        let good = |found: Option<Finding>| matches!(found, Some(Finding::Good(_)));
        assert!(good(slots(&config)));
        let settings = "name = \"own\"\nkind = \"process\"\ncommand = [\"engine\"]\n\
                        devices = [\"0\", \"1\", \"2\"]\n\
                        describe = { fps = 16, features = { text_to_video = true } }";
        config.engines = vec![toml::from_str(settings).unwrap()];
        config.models[0].engine = "own".to_owned();
        assert!(good(slots(&config)));
        config.worker.slots = 1;
        let Some(Finding::Note(words)) = slots(&config) else {
            panic!("no note");
        };
        assert!(words.contains("own has 3 seats (0, 1, 2)"), "{words}");
        config.worker.enabled = false;
        assert!(slots(&config).is_none());
    }
}
