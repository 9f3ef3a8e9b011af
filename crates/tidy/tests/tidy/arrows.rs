//! Which crate may know which. The first word of a crate's name is its group, and the rule is over groups, so a new crate
//! of a group needs no row here.

use std::collections::BTreeMap;

use crate::files::{self, crate_folders, manifest};

/// A group of crates, by the first words of their names, and the groups that it may use. `service` is two crates that
/// never know each other: they meet in `state`.
struct Group {
    name: &'static str,
    first_words: &'static [&'static str],
    uses: &'static [&'static str],
}

const GROUPS: &[Group] = &[
    Group {
        name: "program",
        first_words: &["kinora"],
        uses: &["service", "state", "engines", "media", "network", "ground"],
    },
    Group {
        name: "service",
        first_words: &["api", "worker"],
        uses: &["state", "engines", "media", "network", "ground"],
    },
    Group {
        name: "state",
        first_words: &["store", "blobs", "studio"],
        uses: &["network", "ground"],
    },
    Group {
        name: "engines",
        first_words: &["engine"],
        uses: &["media", "network", "ground"],
    },
    Group {
        name: "media",
        first_words: &["media"],
        uses: &["ground"],
    },
    Group {
        name: "network",
        first_words: &["http", "client", "policy", "traces"],
        uses: &["ground"],
    },
    Group {
        name: "ground",
        first_words: &["contract", "system"],
        uses: &[],
    },
    Group {
        name: "tests",
        first_words: &["bench", "test", "testkit", "tidy"],
        uses: &[
            "program", "service", "state", "engines", "media", "network", "ground", "tests",
        ],
    },
];

/// Which crates of its own group a crate may use.
const INSIDE: &[(&str, &[&str])] = &[
    ("engine-sdcpp", &["engine"]),
    ("engine-host", &["engine"]),
    ("engine-storyboard", &["engine"]),
    ("engine-upstreams", &["engine"]),
    ("media", &["media-h264", "media-resize"]),
    ("media-decode", &["media-resize"]),
    ("client", &["http"]),
    ("http-download", &["http"]),
    ("http-fetch", &["http"]),
    ("policy", &["http", "http-fetch"]),
    ("traces", &["http", "http-fetch"]),
];

fn group(folder: &str) -> &'static Group {
    let first = folder.split('-').next().unwrap_or(folder);
    let mut groups = GROUPS.iter();
    groups
        .find(|group| group.first_words.contains(&first))
        .unwrap_or_else(|| panic!("crates/{folder}: no group has the first word `{first}`"))
}

fn may_use(folder: &str, other: &str) -> bool {
    let (own, below) = (group(folder), group(other));
    let inside = INSIDE.iter().find(|(name, _)| *name == folder);
    own.uses.contains(&below.name) || inside.is_some_and(|(_, others)| others.contains(&other))
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
            for other in inner(&manifest, section) {
                // Wrappers that inject faults are beside what they wrap, behind a feature that only tests turn on.
                let row = manifest[section].get(format!("kinora-{other}"));
                let is_optional = row.and_then(|row| row.get("optional")).is_some();
                let is_fault = other == "testkit" && is_optional;
                assert!(
                    is_fault || may_use(&folder, &other),
                    "{folder} must not know {other}"
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
        let own = group(&folder);
        for other in inner(&manifest, "dev-dependencies") {
            let below = group(&other).name;
            let is_allowed = below == own.name || below == "tests" || own.uses.contains(&below);
            assert!(is_allowed, "tests of {folder} must not know {other}");
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
