//! What is built and by whom: no dependency that nobody names, no version that is anything, none
//! twice in the manifests, and no package in two versions but those of `deny.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use toml::{Table, Value};

use crate::files::{crate_folders, manifest, root, rust};

const SECTIONS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Everything that the manifest of `folder` names, with its section.
fn dependencies(manifest: &Table) -> Vec<(String, String, Value)> {
    let of_platforms = manifest.get("target").and_then(Value::as_table);
    let platforms = of_platforms.into_iter().flat_map(Table::values);
    let tables = platforms.filter_map(Value::as_table);
    let mut named = Vec::new();
    for table in std::iter::once(manifest).chain(tables) {
        for section in SECTIONS {
            let rows = table.get(section).and_then(Value::as_table);
            for (name, row) in rows.into_iter().flatten() {
                named.push((section.to_owned(), name.clone(), row.clone()));
            }
        }
    }
    named
}

fn manifests() -> BTreeMap<String, Table> {
    let folders = crate_folders().into_iter();
    folders
        .map(|folder| {
            let manifest = manifest(&format!("crates/{folder}/Cargo.toml"));
            (folder, manifest)
        })
        .collect()
}

/// Whether a line of code in `text` uses the crate `name`: as the begin of a path, by a `use`, or as a macro.
fn uses(text: &str, name: &str) -> bool {
    let part_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| {
        line.match_indices(name)
            .map(move |(at, _)| line.split_at(at))
    })
    .any(|(before, from)| {
        let after = &from[name.len()..];
        let is_path = after.starts_with("::") || after.starts_with('!');
        let is_use = before.ends_with("use ") && !after.starts_with(part_of_word);
        !before.ends_with(part_of_word) && (is_path || is_use)
    })
}

#[test]
fn a_crate_is_used_by_code_and_not_by_prose() {
    for code in [
        "use url::Url;",
        "let a = url::Url::parse(b);",
        "pub use url;",
        "url!(a)",
    ] {
        assert!(uses(code, "url"), "{code}");
    }
    for other in [
        "// url::Url",
        "let url = 1;",
        "curl::get()",
        "use urls::Url;",
        "url: String",
    ] {
        assert!(!uses(other, "url"), "{other}");
    }
}

#[test]
fn every_dependency_is_named_by_the_code_that_has_it() {
    let files = rust();
    let mut unused = BTreeSet::new();
    for (folder, manifest) in manifests() {
        for (section, name, _) in dependencies(&manifest) {
            let word = name.replace('-', "_");
            let itself = name == format!("kinora-{folder}");
            let source = format!("crates/{folder}/src/");
            let all = format!("crates/{folder}/");
            let within = if section == "dependencies" {
                &source
            } else {
                &all
            };
            let used = files
                .iter()
                .any(|file| file.path.starts_with(within) && uses(&file.text, &word));
            if !used && !itself {
                unused.insert(format!("{folder}: {name} in {section}"));
            }
        }
    }
    assert!(unused.is_empty(), "named by no code: {unused:#?}");
}

#[test]
fn a_version_is_written_down_once_and_never_a_wildcard() {
    let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut wildcards = Vec::new();
    let mut judge = |place: &str, name: &str, row: &Value| {
        let version = row.as_str().or_else(|| row.get("version")?.as_str());
        let elsewhere = ["workspace", "path"]
            .iter()
            .any(|key| row.get(key).is_some());
        if version.is_some_and(|version| version.contains('*')) || version.is_none() && !elsewhere {
            wildcards.push(format!("{place}: {name}"));
        }
        version.is_some()
    };
    for (folder, manifest) in manifests() {
        for (_, name, row) in dependencies(&manifest) {
            if judge(&folder, &name, &row) {
                users.entry(name).or_default().insert(folder.clone());
            }
        }
    }
    let workspace = manifest("Cargo.toml");
    for (name, row) in workspace["workspace"]["dependencies"].as_table().unwrap() {
        judge("Cargo.toml", name, row);
    }
    users.retain(|_, folders| folders.len() > 1);
    assert!(
        users.is_empty(),
        "belong into [workspace.dependencies]: {users:#?}"
    );
    assert!(wildcards.is_empty(), "any version: {wildcards:#?}");
}

/// Everything that is shared is used: what nobody takes any more would stay there for ever.
#[test]
fn what_the_workspace_shares_somebody_takes() {
    let taken: BTreeSet<String> = manifests()
        .values()
        .flat_map(dependencies)
        .map(|(_, name, _)| name)
        .collect();
    let workspace = manifest("Cargo.toml");
    let shared = workspace["workspace"]["dependencies"].as_table().unwrap();
    let idle: Vec<&String> = shared
        .keys()
        .filter(|name| !taken.contains(*name))
        .collect();
    assert!(idle.is_empty(), "taken by no crate: {idle:?}");
}

#[test]
fn no_package_comes_in_two_versions_but_those_that_are_listed() {
    let lock: Table = fs::read_to_string(root().join("Cargo.lock"))
        .unwrap()
        .parse()
        .unwrap();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in lock["package"].as_array().unwrap() {
        let field = |name| package[name].as_str().unwrap();
        versions
            .entry(field("name"))
            .or_default()
            .insert(field("version"));
    }
    versions.retain(|_, versions| versions.len() > 1);
    let twice: BTreeSet<&str> = versions.keys().copied().collect();
    let deny = manifest("deny.toml");
    let skipped = deny["bans"]["skip"].as_array().unwrap().iter();
    let listed: BTreeSet<&str> = skipped.map(|row| row["crate"].as_str().unwrap()).collect();
    assert_eq!(
        twice, listed,
        "in Cargo.lock, and in `skip` of deny.toml: {versions:#?}"
    );
}
