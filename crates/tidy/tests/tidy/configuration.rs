//! `docs/configuration.md`: every setting with its default, its variable and its meaning, from `config.default.toml`.
//! A test of the binary compares that file with the built-in defaults, so the page is as true.

use std::fmt::Write;
use std::fs;

use crate::documents::assert_tables;
use crate::files::{manifest, root};

#[test]
fn the_configuration_page_is_the_default_file() {
    let text = fs::read_to_string(root().join("config.default.toml")).unwrap();
    let items = items(&text);
    let settings: Vec<String> = items.iter().filter_map(Item::setting).collect();
    let examples: Vec<String> = items.iter().filter_map(Item::example).collect();
    let blocks = [
        ("settings", settings.join("\n")),
        ("lists", examples.join("\n")),
    ];
    assert_tables("docs/configuration.md", &blocks);
}

#[test]
fn no_setting_is_missing_from_the_configuration_page() {
    let page = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let mut missing = Vec::new();
    find_missing(&manifest("config.default.toml"), "", &page, &mut missing);
    assert!(missing.is_empty(), "no heading for {missing:?}");
}

fn find_missing(table: &toml::Table, section: &str, page: &str, missing: &mut Vec<String>) {
    for (key, value) in table {
        let name = joined(section, key);
        let is_list_of_tables = value
            .as_array()
            .is_some_and(|values| values.iter().any(toml::Value::is_table));
        match value {
            toml::Value::Table(inner) => find_missing(inner, &name, page, missing),
            _ if is_list_of_tables || page.contains(&format!("\n### `{name}`\n")) => (),
            _ => missing.push(name),
        }
    }
}

/// A piece of the file.
enum Item {
    /// `[name]`.
    Section { name: String },
    /// `key = value`, with the comment above it.
    Setting {
        name: String,
        value: String,
        about: String,
    },
    /// Tables of a list, in comments or not, with the prose above them.
    List { about: String, toml: String },
}

impl Item {
    /// Its text on the page, unless it belongs to a list.
    fn setting(&self) -> Option<String> {
        match self {
            Self::Section { name } => Some(format!("## `[{name}]`\n")),
            Self::Setting { name, value, about } => {
                let variable = format!("KINORA_{}", name.replace('.', "_").to_uppercase());
                Some(format!(
                    "### `{name}`\n\nDefault: `{value}`. Variable: `{variable}`.\n\n{about}\n"
                ))
            }
            Self::List { .. } => None,
        }
    }

    fn example(&self) -> Option<String> {
        let Self::List { about, toml } = self else {
            return None;
        };
        let about = match about.is_empty() {
            true => "The default:",
            false => about.as_str(),
        };
        Some(format!("{about}\n\n```toml\n{toml}```\n"))
    }
}

fn items(text: &str) -> Vec<Item> {
    let (mut items, mut section) = (Vec::new(), String::new());
    // The head of the file speaks to its reader; the page has words of its own.
    for part in text.split("\n\n").skip(1) {
        let mut comment = Vec::new();
        if part.starts_with("[[") {
            add_default(&mut items, part.trim_end());
            continue;
        }
        for line in part.lines() {
            if let Some(said) = line.strip_prefix('#') {
                comment.push(said.strip_prefix(' ').unwrap_or(said));
            } else if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']').to_owned();
                items.push(Item::Section {
                    name: section.clone(),
                });
            } else if let Some((key, value)) = line.split_once(" = ") {
                let name = joined(&section, key);
                let about = match (comment.is_empty(), items.last()) {
                    // One comment for two keys stands above the first.
                    (true, Some(Item::Setting { name, .. })) => format!("See `{name}`."),
                    _ => comment.join(" "),
                };
                comment.clear();
                items.push(Item::Setting {
                    name,
                    value: value.to_owned(),
                    about,
                });
            }
        }
        items.extend(list(&comment));
    }
    items
}

/// A table of a list outside of comments: together they are the list's default.
fn add_default(items: &mut Vec<Item>, table: &str) {
    match items.last_mut() {
        Some(Item::List { about, toml }) if about.is_empty() => {
            write!(toml, "\n{table}\n").unwrap();
        }
        _ => items.push(Item::List {
            about: String::new(),
            toml: format!("{table}\n"),
        }),
    }
}

/// What a comment without a setting shows.
fn list(comment: &[&str]) -> Option<Item> {
    let tables = comment.iter().position(|line| line.starts_with("[["))?;
    let (about, tables) = comment.split_at(tables);
    let mut toml = String::new();
    for line in tables {
        writeln!(toml, "{line}").unwrap();
    }
    let about = about.join(" ").trim_end().to_owned();
    Some(Item::List { about, toml })
}

fn joined(section: &str, key: &str) -> String {
    match section {
        "" => key.to_owned(),
        _ => format!("{section}.{key}"),
    }
}
