//! Settings of earlier versions that are fixed now. A file or a variable that sets one was valid yesterday, and its
//! value harms nobody: the service starts without it, and says so.

use toml::{Table, Value};

const REMOVED: [(&str, &str); 14] = [
    ("http", "first_byte_timeout_seconds"),
    ("http", "header_timeout_seconds"),
    ("http", "idle_timeout_seconds"),
    ("http", "write_timeout_seconds"),
    ("media", "encoder_threads"),
    ("references", "host_connections_max"),
    ("results", "tombstone_days"),
    ("store", "poll_age_ms_max"),
    ("storyboard", "threads"),
    ("weights", "retries_max"),
    ("weights", "stall_seconds"),
    ("worker", "settled_after_seconds"),
    ("worker", "start_pause_seconds_max"),
    ("worker", "sweep_seconds"),
];

/// Takes such settings out of a file. Returns their names.
pub(super) fn take_settings(settings: &mut Table) -> Vec<String> {
    let mut names = Vec::new();
    for (section, key) in REMOVED {
        let table = settings.get_mut(section).and_then(Value::as_table_mut);
        if table.and_then(|table| table.remove(key)).is_some() {
            names.push(format!("{section}.{key}"));
        }
    }
    let engines = settings.get_mut("engines").and_then(Value::as_array_mut);
    let engines = engines.into_iter().flatten();
    for engine in engines.filter_map(Value::as_table_mut) {
        let text = |key| engine.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = text("name").to_owned();
        if text("kind") == "storyboard" && engine.remove("threads").is_some() {
            names.push(format!("threads of the engine {name}"));
        }
    }
    names
}

/// Whether a variable sets such a setting.
pub(super) fn is_variable(name: &str) -> bool {
    REMOVED
        .iter()
        .any(|(section, key)| name == format!("KINORA_{section}_{key}").to_ascii_uppercase())
}
