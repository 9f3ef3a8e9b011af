//! `~/`, the user's home folder, in paths: a shell expands it at the start of a word, and not in
//! `--data=~/kinora`, in a variable of a container or in a configuration file.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use toml::Value;

use crate::failure::Failure;

/// Parses a flag that is a path.
pub(crate) fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|given: OsString| {
        let found = given
            .to_str()
            .map(|text| expand(text, home_folder().as_deref()));
        match found.transpose().map_err(|failure| failure.to_string())? {
            Some(Some(path)) => Ok(path.into()),
            _ => Ok::<PathBuf, String>(given.into()),
        }
    })
}

/// The path that `text` names.
pub(crate) fn expand_home(text: &str) -> Result<PathBuf, Failure> {
    let expanded = expand(text, home_folder().as_deref())?;
    Ok(expanded.unwrap_or_else(|| text.to_owned()).into())
}

/// Expands every setting that begins with `~/`, or with `sqlite:~/`.
pub(crate) fn expand_settings(settings: &mut Value) -> Result<(), Failure> {
    match settings {
        Value::String(text) => {
            if let Some(path) = expand(text, home_folder().as_deref())? {
                *text = path;
            } else if let Some(path) = text.strip_prefix("sqlite:")
                && let Some(path) = expand(path, home_folder().as_deref())?
            {
                *text = format!("sqlite:{path}");
            }
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(expand_settings),
        Value::Table(table) => table
            .iter_mut()
            .try_for_each(|(_, value)| expand_settings(value)),
        _ => Ok(()),
    }
}

fn home_folder() -> Option<OsString> {
    std::env::var_os("HOME").filter(|home| !home.is_empty())
}

/// The path that `text` means if it begins with `~/`; `None` for any other text.
fn expand(text: &str, home: Option<&OsStr>) -> Result<Option<String>, Failure> {
    // Not `~anna/`: that takes the user database, which a container often does not have.
    let Some(rest) = text.strip_prefix("~/") else {
        return Ok(None);
    };
    match home.and_then(OsStr::to_str) {
        Some(home) => Ok(Some(format!("{}/{rest}", home.trim_end_matches('/')))),
        None => Err(Failure::new(format!(
            "{text:?} is in the home folder, which the variable HOME does not name; write the whole path"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_the_home_folder_is_whole_and_any_other_text_stays() {
        let home = Some(OsStr::new("/home/anna/"));
        let found = |text| expand(text, home).unwrap();
        assert_eq!(found("~/kin").as_deref(), Some("/home/anna/kin"));
        for text in ["", "~", "~anna/kin", "./~/kin", "/srv/kin", "a~/b"] {
            assert_eq!(found(text), None, "{text}");
        }
        assert!(
            expand("~/kin", None)
                .unwrap_err()
                .to_string()
                .contains("HOME")
        );
    }

    #[test]
    fn settings_are_expanded_wherever_they_stand() {
        let text = "data = \"~/kin\"\nn = 1\n[store]\nurl = \"sqlite:~/kin.db\"\n[[engines]]\ncommand = [\"~/run\", \"-v\"]";
        let mut settings = Value::Table(text.parse().unwrap());
        expand_settings(&mut settings).unwrap();
        let home = std::env::var("HOME").unwrap();
        assert_eq!(settings["data"].as_str().unwrap(), format!("{home}/kin"));
        let url = settings["store"]["url"].as_str().unwrap();
        assert_eq!(url, format!("sqlite:{home}/kin.db"));
        let command = &settings["engines"][0]["command"];
        assert_eq!(command[0].as_str().unwrap(), format!("{home}/run"));
        assert_eq!(command[1].as_str(), Some("-v"));
    }
}
