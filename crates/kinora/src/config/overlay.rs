//! Layers of settings as TOML tables: a file overrides the defaults, variables override both. A
//! layer replaces single keys; lists are replaced as a whole. A variable that names no setting is
//! refused, unless Kubernetes set it.

use std::net::IpAddr;

use toml::{Table, Value};

use crate::failure::Failure;

/// Variables that are not settings.
const OTHER_VARIABLES: [&str; 5] = [
    "KINORA_CONFIG",
    "KINORA_KEY",
    "KINORA_ACCEPT_LOSS",
    "KINORA_URL",
    "KINORA_API_KEY",
];

/// Parses the text of a file; `name` is for the message.
pub(super) fn parse(text: &str, name: &str) -> Result<Table, Failure> {
    text.parse()
        .map_err(|error| Failure::because(format!("{name} is not valid TOML"), error))
}

/// Overrides `lower` with `upper`.
pub(super) fn merge(lower: &mut Table, upper: Table) {
    for (key, value) in upper {
        match (lower.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                lower.insert(key, value);
            }
        }
    }
}

/// Applies every variable that names a setting: `KINORA_WORKER_SLOTS` overrides `worker.slots`. An
/// empty one is unset, as a shell's `${X:-}` leaves it. A variable with the prefix that names no
/// setting is an error: otherwise a typo would go unnoticed. Returns the names of Kubernetes'
/// service links, which are ignored.
pub(super) fn apply_variables(
    settings: &mut Table,
    variables: &[(String, String)],
) -> Result<Vec<String>, Failure> {
    let mut links = Vec::new();
    for (name, text) in variables {
        let Some(rest) = name.strip_prefix("KINORA_") else {
            continue;
        };
        if OTHER_VARIABLES.contains(&name.as_str()) {
            continue;
        }
        let Some(setting) = find_setting(settings, &rest.to_ascii_lowercase()) else {
            if is_service_link(rest, text) {
                links.push(name.clone());
                continue;
            }
            return Err(Failure::new(format!(
                "The variable {name} names no setting; see `kinora config`."
            )));
        };
        if text.is_empty() {
            continue;
        }
        // The value in the lower layer decides the type, so that a variable needs no quotes and
        // `KINORA_WORKER_SLOTS=four` is refused here, with the variable's name.
        *setting = parse_value(setting, text).ok_or_else(|| {
            Failure::new(format!(
                "The variable {name} must be {}.",
                expected_type(setting)
            ))
        })?;
    }
    Ok(links)
}

/// The expected type of a variable that sets `setting`, in words.
const fn expected_type(setting: &Value) -> &'static str {
    match setting {
        Value::Boolean(_) => "true or false",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number",
        _ => "a text",
    }
}

/// Parses a boolean, in the words that other programs accept from variables.
pub(super) fn parse_boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// The setting that the lower-case rest of a variable names, at the top level or in a section.
fn find_setting<'t>(settings: &'t mut Table, rest: &str) -> Option<&'t mut Value> {
    let path = setting_path(settings, rest)?;
    let (key, sections) = path.split_last()?;
    let mut table = settings;
    for section in sections {
        table = table.get_mut(section)?.as_table_mut()?;
    }
    table.get_mut(key).filter(|value| !is_list_of_tables(value))
}

/// Whether the value is a list of tables such as `[[models]]`, which no text can replace.
fn is_list_of_tables(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|items| items.iter().any(Value::is_table))
}

/// The section and key names that `rest` joins with underscores.
fn setting_path(table: &Table, rest: &str) -> Option<Vec<String>> {
    table.iter().find_map(|(key, value)| {
        // Sections and keys contain underscores themselves, so the name cannot be split at them. It
        // is matched from the left, key by key: `worker_lease_seconds` is the section `worker` and
        // its key `lease_seconds`. A key that fits only the beginning leaves a rest that names
        // nothing, and the next key is tried.
        let behind = rest.strip_prefix(key.as_str())?;
        let Value::Table(section) = value else {
            return behind.is_empty().then(|| vec![key.clone()]);
        };
        let mut path = setting_path(section, behind.strip_prefix('_')?)?;
        path.insert(0, key.clone());
        Some(path)
    })
}

/// Parses the text as a value of the same type as `like`.
fn parse_value(like: &Value, text: &str) -> Option<Value> {
    match like {
        Value::String(_) => Some(Value::String(text.to_owned())),
        Value::Integer(_) => text.parse().ok().map(Value::Integer),
        Value::Boolean(_) => parse_boolean(text).map(Value::Boolean),
        Value::Float(_) => text.parse().ok().map(Value::Float),
        // Variables can set only lists of text: one item, or several separated by commas.
        Value::Array(items) if items.iter().all(Value::is_str) => {
            let items = text
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty());
            let items = items.map(|item| Value::String(item.to_owned()));
            Some(Value::Array(items.collect()))
        }
        _ => None,
    }
}

/// Transport protocols of a Service's port.
const PROTOCOLS: [&str; 3] = ["tcp", "udp", "sctp"];

/// Whether a variable is a service link, by its name behind `KINORA_` and by its value: a misspelt
/// setting may have such a name, but hardly such a value too.
fn is_service_link(rest: &str, value: &str) -> bool {
    // A Service called `kinora-api` makes KINORA_API_PORT.
    let mut begins = std::iter::once(rest).chain(rest.match_indices('_').filter_map(|(at, _)| {
        let (_, behind) = rest.split_at_checked(at + 1)?;
        Some(behind)
    }));
    begins.any(|name| is_link_variable(name, value))
}

/// Whether Kubernetes gives a Service a variable that ends so, with such a value.
fn is_link_variable(name: &str, value: &str) -> bool {
    // The names are those of Docker's old container links, which Kubernetes still sets in every
    // container ("Accessing the Service" in its documentation), unless a pod has
    // `enableServiceLinks: false`.
    if name == "SERVICE_HOST" {
        return is_address(value);
    }
    if name == "SERVICE_PORT" || name.starts_with("SERVICE_PORT_") {
        return is_number(value);
    }
    let Some(port) = name.strip_prefix("PORT") else {
        return false;
    };
    if port.is_empty() {
        return is_url(value);
    }
    // Such as `_8080_TCP_ADDR`.
    let mut words = port.split('_').skip(1);
    let number = words.next().and_then(|word| word.parse::<u16>().ok());
    let protocol = words.next().map(str::to_ascii_lowercase);
    let is_known = protocol.is_some_and(|protocol| PROTOCOLS.contains(&&*protocol));
    let fits = match words.next() {
        None => is_url(value),
        Some("PROTO") => PROTOCOLS.contains(&value),
        Some("PORT") => is_number(value),
        Some("ADDR") => is_address(value),
        Some(_) => false,
    };
    number.is_some() && is_known && fits && words.next().is_none()
}

fn is_address(value: &str) -> bool {
    value.parse::<IpAddr>().is_ok()
}

fn is_number(value: &str) -> bool {
    value.parse::<u16>().is_ok()
}

fn is_url(value: &str) -> bool {
    let scheme = value.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| PROTOCOLS.contains(&scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_names_nothing_is_an_error() {
        let mut settings = parse("a = 1\n[b]\nc_d = \"x\"", "test").unwrap();
        let set = |settings: &mut Table, name: &str, text: &str| {
            apply_variables(settings, &[(name.to_owned(), text.to_owned())])
        };
        set(&mut settings, "KINORA_B_C_D", "y").unwrap();
        assert_eq!(settings["b"]["c_d"].as_str(), Some("y"));
        set(&mut settings, "KINORA_KEY", "kinora_secret").unwrap();
        set(&mut settings, "OTHER", "1").unwrap();
        assert!(set(&mut settings, "KINORA_B", "y").is_err());
        assert!(set(&mut settings, "KINORA_A", "one").is_err());
        assert!(set(&mut settings, "KINORA_Z", "1").is_err());
        assert!(set(&mut settings, "KINORA_Z", "").is_err());
    }

    #[test]
    fn an_empty_variable_is_unset() {
        let mut settings = parse("a = 1\nb = \"x\"\nc = [\"y\"]", "test").unwrap();
        let before = settings.clone();
        let empty =
            ["KINORA_A", "KINORA_B", "KINORA_C"].map(|name| (name.to_owned(), String::new()));
        apply_variables(&mut settings, &empty).unwrap();
        assert_eq!(settings, before);
    }

    #[test]
    fn a_boolean_has_its_usual_words() {
        let mut settings = parse("a = false", "test").unwrap();
        for (text, meant) in [("1", true), ("no", false), ("True", true), ("OFF", false)] {
            apply_variables(&mut settings, &[("KINORA_A".to_owned(), text.to_owned())]).unwrap();
            assert_eq!(settings["a"].as_bool(), Some(meant), "{text}");
        }
        for text in ["2", "perhaps", "\"true\""] {
            let variable = [("KINORA_A".to_owned(), text.to_owned())];
            let refused = apply_variables(&mut settings, &variable).unwrap_err();
            assert!(refused.to_string().contains("true or false"), "{refused}");
        }
    }

    #[test]
    fn service_links_are_told_and_change_nothing() {
        let mut settings = parse("[store]\nurl = \"x\"", "test").unwrap();
        let before = settings.clone();
        let link = (
            "KINORA_STORE_PORT".to_owned(),
            "tcp://10.0.0.1:5432".to_owned(),
        );
        let ignored = apply_variables(&mut settings, &[link]).unwrap();
        assert_eq!(ignored, ["KINORA_STORE_PORT"]);
        assert_eq!(settings, before);
        let typo = ("KINORA_STORE_PORT".to_owned(), "5432".to_owned());
        assert!(apply_variables(&mut settings, &[typo]).is_err());
    }
}

#[cfg(test)]
mod service_links_tests {
    use super::*;

    #[test]
    fn the_variables_of_a_service_are_told_by_name_and_value() {
        for (name, value) in [
            ("SERVICE_HOST", "10.96.0.10"),
            ("SERVICE_HOST", "fd00::10"),
            ("SERVICE_PORT", "8080"),
            ("API_SERVICE_PORT_HTTP", "8080"),
            ("API_SERVICE_HOST", "10.96.0.10"),
            ("PORT", "tcp://10.96.0.10:8080"),
            ("STORE_PRIMARY_PORT", "tcp://10.96.0.10:5432"),
            ("PORT_8080_TCP", "tcp://10.96.0.10:8080"),
            ("PORT_8080_TCP_PROTO", "tcp"),
            ("PORT_8080_TCP_PORT", "8080"),
            ("PORT_8080_TCP_ADDR", "10.96.0.10"),
            ("METRICS_PORT_53_UDP_ADDR", "fd00::10"),
        ] {
            assert!(is_service_link(name, value), "{name}={value}");
        }
    }

    #[test]
    fn a_misspelt_setting_is_none() {
        for (name, value) in [
            ("PORT", "8080"),
            ("LISTEN_PORT", "8080"),
            ("SERVICE_HOST", "video.example.com"),
            ("SERVICE_PORT", "http"),
            ("WORKER_SLOT", "4"),
            ("PORTS", "tcp://10.96.0.10:8080"),
            ("PORT_8080_TCP_ADDR", "here"),
            ("PORT_8080_ICMP", "tcp://10.96.0.10:8080"),
            ("PORT_X_TCP", "tcp://10.96.0.10:8080"),
            ("PORT_8080_TCP_ADDR_X", "10.96.0.10"),
            ("", ""),
        ] {
            assert!(!is_service_link(name, value), "{name}={value}");
        }
    }
}
