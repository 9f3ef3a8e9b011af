//! Layers of settings as TOML tables: a file overrides the defaults, variables override both. A
//! layer replaces single keys; lists are replaced as a whole.

use toml::{Table, Value};

use crate::failure::Failure;
use crate::service_links::is_service_link;

/// Variables that are not settings.
const OTHER_VARIABLES: [&str; 5] = [
    "KINORA_CONFIG",
    "KINORA_KEY",
    "KINORA_ACCEPT_LOSS",
    "KINORA_URL",
    "KINORA_API_KEY",
];

/// Parses the text of a file; `name` is for the message.
pub(crate) fn parse(text: &str, name: &str) -> Result<Table, Failure> {
    text.parse()
        .map_err(|error| Failure::because(format!("{name} is not valid TOML"), error))
}

/// Overrides `lower` with `upper`.
pub(crate) fn merge(lower: &mut Table, upper: Table) {
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
pub(crate) fn apply_variables(
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
        let Some(setting) = find(settings, &rest.to_ascii_lowercase()) else {
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
        *setting = read(setting, text).ok_or_else(|| {
            Failure::new(format!("The variable {name} must be {}.", wanted(setting)))
        })?;
    }
    Ok(links)
}

/// What a variable may be that sets `setting`, in words.
const fn wanted(setting: &Value) -> &'static str {
    match setting {
        Value::Boolean(_) => "true or false",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number",
        _ => "a text",
    }
}

/// The usual words for a boolean, as other programs take them from variables.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// The setting that the lower-case rest of a variable names, at the top level or in a section.
fn find<'t>(settings: &'t mut Table, rest: &str) -> Option<&'t mut Value> {
    let path = path(settings, rest)?;
    let (key, sections) = path.split_last()?;
    let mut table = settings;
    for section in sections {
        table = table.get_mut(section)?.as_table_mut()?;
    }
    table.get_mut(key).filter(|value| !is_list_of_tables(value))
}

/// Such as `[[models]]`, which no single text can replace.
fn is_list_of_tables(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|items| items.iter().any(Value::is_table))
}

/// The section and key names that `rest` joins with underscores.
fn path(table: &Table, rest: &str) -> Option<Vec<String>> {
    table.iter().find_map(|(key, value)| {
        let behind = rest.strip_prefix(key.as_str())?;
        let Value::Table(section) = value else {
            return behind.is_empty().then(|| vec![key.clone()]);
        };
        let mut path = path(section, behind.strip_prefix('_')?)?;
        path.insert(0, key.clone());
        Some(path)
    })
}

/// Parses the text as a value of the same type as `like`.
fn read(like: &Value, text: &str) -> Option<Value> {
    match like {
        Value::String(_) => Some(Value::String(text.to_owned())),
        Value::Integer(_) => text.parse().ok().map(Value::Integer),
        Value::Boolean(_) => boolean(text).map(Value::Boolean),
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
