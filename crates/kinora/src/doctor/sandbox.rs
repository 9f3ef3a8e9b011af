//! Whether this system can sandbox child processes.

use super::finding::Finding;
use crate::config::{Config, Engine};

/// Tries the sandbox, and looks for engines without one.
pub(super) fn sandbox(config: &Config) -> Finding {
    finding(&kinora_host::rehearse(), &open_engines(config))
}

/// Engines whose processes are not sandboxed.
fn open_engines(config: &Config) -> Vec<&str> {
    let is_open = |engine: &&Engine| engine.host.is_some_and(|host| !host.sandbox);
    let open = config.engines.iter().filter(is_open);
    open.map(|engine| &*engine.name).collect()
}

fn finding(lacking: &[String], open: &[&str]) -> Finding {
    let mut notes = Vec::new();
    if !lacking.is_empty() {
        notes.push(format!(
            "this system lacks {}; the rest is applied (see SECURITY.md)",
            lacking.join("; ")
        ));
    }
    if !open.is_empty() {
        notes.push(format!("switched off for {}", open.join(", ")));
    }
    if notes.is_empty() {
        return Finding::Good(
            "child processes are sandboxed (no capabilities, Landlock, seccomp)".to_owned(),
        );
    }
    Finding::Note(notes.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_and_what_is_switched_off_is_named() {
        assert!(matches!(finding(&[], &[]), Finding::Good(_)));
        let Finding::Note(words) =
            finding(&["Landlock is not enabled at boot".to_owned()], &["wan"])
        else {
            panic!("no note");
        };
        assert!(words.contains("Landlock is not enabled at boot"), "{words}");
        assert!(words.contains("switched off for wan"), "{words}");
    }

    #[test]
    fn an_engine_that_does_without_is_found() {
        let mut config = Config::defaults();
        let settings = "name = \"boxed\"\nkind = \"storyboard\"\nhost = { sandbox = false }";
        config.engines = vec![toml::from_str(settings).unwrap()];
        assert_eq!(open_engines(&config), ["boxed"]);
    }
}
