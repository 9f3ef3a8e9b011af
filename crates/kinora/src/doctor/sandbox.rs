//! Whether this system can sandbox child processes.

use kinora_engine::Output;

use super::finding::Finding;
use crate::config::Config;

/// Tries the sandbox, and looks for engines without one.
pub(super) fn sandbox(config: &Config) -> Finding {
    let is_root = rustix::process::geteuid().is_root();
    finding(&kinora_host::rehearse(), &open_engines(config), is_root)
}

/// Engines whose processes are neither sandboxed nor confined.
fn open_engines(config: &Config) -> Vec<&str> {
    let open = config.engines.iter().filter(|engine| {
        let confined = match engine.settings.output() {
            Output::Frames(frames) => frames.program().and_then(|program| program.confined),
            Output::Films(_) => None,
        };
        confined.is_none() && engine.host.is_some_and(|host| !host.sandbox)
    });
    open.map(|engine| &*engine.name).collect()
}

fn finding(lacking: &[String], open: &[&str], is_root: bool) -> Finding {
    let mut notes = Vec::new();
    if !lacking.is_empty() {
        notes.push(format!(
            "this system lacks {}; the rest is applied (see SECURITY.md)",
            lacking.join("; ")
        ));
    }
    if !open.is_empty() {
        let more = if is_root {
            ", and as root the service's memory and environment too"
        } else {
            ""
        };
        notes.push(format!(
            "switched off for {}: they can read the data folder{more} (see SECURITY.md)",
            open.join(", ")
        ));
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
        assert!(matches!(finding(&[], &[], true), Finding::Good(_)));
        let Finding::Note(words) = finding(
            &["Landlock is not enabled at boot".to_owned()],
            &["wan"],
            false,
        ) else {
            panic!("no note");
        };
        assert!(words.contains("Landlock is not enabled at boot"), "{words}");
        assert!(words.contains("switched off for wan"), "{words}");
        assert!(!words.contains("as root"), "{words}");
        let Finding::Note(words) = finding(&[], &["wan"], true) else {
            panic!("no note");
        };
        assert!(words.contains("as root the service's memory"), "{words}");
    }

    #[test]
    fn an_engine_that_does_without_is_found() {
        let mut config = Config::defaults();
        let settings = "name = \"boxed\"\nkind = \"storyboard\"\nhost = { sandbox = false }";
        let command =
            "name = \"own\"\nkind = \"process\"\ncommand = [\"cat\"]\ndescribe = { features = {} }";
        let confined = command.replace("own", "confined") + "\nconfine = true";
        config.engines = [settings, command, &confined]
            .map(|settings| toml::from_str(settings).unwrap())
            .into();
        assert_eq!(open_engines(&config), ["boxed", "own"]);
    }
}
