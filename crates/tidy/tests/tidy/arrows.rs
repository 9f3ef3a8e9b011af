//! Which crate may know which: arrows point downward only, and `api` and `worker` meet only in
//! the store. A new crate is one new row here.

use std::collections::BTreeMap;

use crate::files::{self, crate_folders, manifest};

/// A crate's floor; crates stand on floors below their own.
const FLOORS: &[(&str, u32)] = &[
    ("contract", 0),
    ("crash", 0),
    ("durable", 0),
    ("faulty", 0),
    ("h264", 0),
    ("http", 0),
    ("pages", 0),
    ("pool", 0),
    ("resize", 0),
    ("scratch", 0),
    ("test-comfyui", 0),
    ("test-postgres", 0),
    ("test-s3", 0),
    ("blobs", 1),
    ("client", 1),
    ("decode", 1),
    ("download", 1),
    ("engine", 1),
    ("fetch", 1),
    ("media", 1),
    ("store", 1),
    ("policy", 2),
    ("traces", 2),
    ("api", 3),
    ("diffusion", 3),
    ("engine-upstreams", 3),
    ("host", 3),
    ("process", 3),
    ("storyboard", 3),
    ("test-engine", 3),
    ("worker", 3),
    ("kinora", 4),
    ("bench", TESTS),
    ("e2e", TESTS),
    ("fuzz", TESTS),
    ("sim", TESTS),
    ("tidy", TESTS),
];

/// Crates of tests and measurements: they may know all, and nobody else knows them.
const TESTS: u32 = 5;

/// Who alone may stand on a crate.
const ONLY_FOR: &[(&str, &str)] = &[("h264", "media")];

fn floor(folder: &str) -> u32 {
    let known = FLOORS.iter().find(|(name, _)| *name == folder);
    known
        .unwrap_or_else(|| panic!("crates/{folder} has no floor yet: add its row"))
        .1
}

/// The crates of this workspace that `section` of a manifest names, as folders.
fn inner(manifest: &toml::Table, section: &str) -> Vec<String> {
    let own = |(name, _): (&String, &toml::Value)| match name.strip_prefix("kinora-") {
        Some(folder) => Some(folder.to_owned()),
        None => (name == "kinora").then(|| name.clone()),
    };
    let sections = manifest.get(section).and_then(toml::Value::as_table);
    sections.into_iter().flatten().filter_map(own).collect()
}

fn manifests() -> BTreeMap<String, toml::Table> {
    let read = |folder: String| {
        let manifest = manifest(&format!("crates/{folder}/Cargo.toml"));
        (folder, manifest)
    };
    crate_folders().into_iter().map(read).collect()
}

#[test]
fn a_folder_is_its_crate_s_name_without_the_prefix() {
    for (folder, manifest) in manifests() {
        let expected = match folder.as_str() {
            "kinora" => "kinora".to_owned(),
            other => format!("kinora-{other}"),
        };
        assert_eq!(
            manifest["package"]["name"].as_str(),
            Some(expected.as_str())
        );
    }
}

#[test]
fn arrows_point_downward() {
    for (folder, manifest) in manifests() {
        for section in ["dependencies", "build-dependencies"] {
            for below in inner(&manifest, section) {
                let among_tests = floor(&folder) == TESTS && floor(&below) == TESTS;
                assert!(
                    among_tests || floor(&below) < floor(&folder),
                    "{folder} must not know {below}"
                );
                let only = ONLY_FOR.iter().find(|(name, _)| *name == below);
                let welcome = only.is_none_or(|(_, user)| *user == folder);
                assert!(
                    welcome || floor(&folder) == TESTS,
                    "{folder} must not know {below}"
                );
            }
        }
    }
}

#[test]
fn only_http_sets_up_tls_for_clients() {
    for (folder, manifest) in manifests() {
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        for name in ["hyper-rustls", "webpki-roots"] {
            let has_it = dependencies.is_some_and(|table| table.contains_key(name));
            assert_eq!(has_it, folder == "http", "{folder} and {name}");
        }
    }
}

#[test]
fn api_and_worker_never_know_each_other_even_in_tests() {
    let manifests = manifests();
    for section in ["dependencies", "dev-dependencies"] {
        assert!(!inner(&manifests["api"], section).contains(&"worker".to_owned()));
        assert!(!inner(&manifests["worker"], section).contains(&"api".to_owned()));
    }
}

#[test]
fn tests_look_sideways_or_down_but_never_up() {
    for (folder, manifest) in manifests() {
        for other in inner(&manifest, "dev-dependencies") {
            assert!(
                floor(&other) <= floor(&folder),
                "tests of {folder} must not know {other}"
            );
        }
    }
}

/// What the bottom crate promises in its first lines.
#[test]
fn the_contract_depends_on_nothing_that_runs() {
    let allowed = [
        "base64",
        "crc32fast",
        "hmac",
        "serde",
        "serde_json",
        "sha2",
        "thiserror",
        "toml",
        "url",
        "utoipa",
    ];
    let manifest = manifest("crates/contract/Cargo.toml");
    for name in manifest["dependencies"].as_table().unwrap().keys() {
        assert!(
            allowed.contains(&name.as_str()),
            "contract must not need {name}"
        );
    }
}

#[test]
fn inner_dependencies_are_named_once_in_the_root() {
    for (folder, manifest) in manifests() {
        for section in ["dependencies", "build-dependencies"] {
            for below in inner(&manifest, section) {
                let row = &manifest[section][&format!("kinora-{below}")];
                let shared = row.get("workspace").and_then(toml::Value::as_bool);
                assert_eq!(
                    shared,
                    Some(true),
                    "{folder}: {below} by `workspace = true`"
                );
            }
        }
    }
}

/// Files of the crate `store` that open a SQLite store for all others.
const OPENERS: [&str; 3] = ["inspect.rs", "lib.rs", "open.rs"];

/// What both stores share knows no database.
#[test]
fn sqlite_is_known_in_its_folder_alone() {
    let wrong = files::rust().into_iter().filter_map(|file| {
        let path = file.path.strip_prefix("crates/store/src/")?;
        let is_allowed = path.starts_with("sqlite/");
        let names_sql = file.text.contains("rusqlite");
        let names_store = file.text.contains("sqlite::") && !OPENERS.contains(&path);
        (!is_allowed && (names_sql || names_store)).then(|| path.to_owned())
    });
    assert_eq!(wrong.collect::<Vec<_>>(), [""; 0]);
}
