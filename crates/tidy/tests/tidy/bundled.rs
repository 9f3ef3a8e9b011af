//! `crates/kinora/licences.txt`, which `kinora licences` prints: what the binary is built from, under
//! which licence, and the texts that go with binaries. `KINORA_UPDATE_DOCS=1` writes it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::files::root;
use crate::licences::{permits, run};

const PAGE: &str = "crates/kinora/licences.txt";
/// Releases are built for it; others differ in a few packages.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
/// What the names of licence files in a package's folder begin with.
const NAMES: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];
/// Texts of what packages bundle, deeper in their folders.
const BUNDLED: [(&str, &str); 6] = [
    ("fdk-aac-sys", "aac/NOTICE"),
    ("libmimalloc-sys", "c_src/mimalloc/v3/LICENSE"),
    ("libwebp-sys", "vendor/COPYING"),
    ("libwebp-sys", "vendor/PATENTS"),
    ("openh264-sys2", "upstream/LICENSE"),
    ("ring", "third_party/fiat/LICENSE"),
];
/// Packages without a text, and the package of the same authors that has it.
const SAME_AS: [(&str, &str); 2] = [
    ("rusty_h264-common", "rusty_h264-accel"),
    ("rusty_h264-decoder", "rusty_h264-accel"),
];
const FONTS: [&str; 1] = ["Noto"];
const RULE: &str =
    "\n================================================================================\n";

/// A package that the binary contains.
struct Package {
    name: String,
    version: String,
    licence: String,
    authors: String,
    folder: PathBuf,
}

#[test]
fn the_printed_licences_are_those_of_what_the_binary_contains() {
    let page = root().join(PAGE);
    let now = document(&packages());
    for needed in [
        "Software License for The Fraunhofer FDK AAC Codec Library",
        "Cisco Systems",
        "Google Inc.",
        "SIL OPEN FONT LICENSE",
        "Mozilla Public License",
        "UNICODE LICENSE",
    ] {
        assert!(now.contains(needed), "{needed} is missing");
    }
    if std::env::var_os("KINORA_UPDATE_DOCS").is_some() {
        fs::write(&page, now).unwrap();
        return;
    }
    let written = fs::read_to_string(&page).unwrap_or_default();
    assert!(
        written == now,
        "{PAGE} is out of date: `KINORA_UPDATE_DOCS=1 cargo test -p kinora-tidy` writes it."
    );
}

/// What the package `kinora` depends on, directly or not, with its default features. Macros run
/// at build time and leave nothing of themselves.
fn packages() -> Vec<Package> {
    let arguments = [
        "metadata",
        "--format-version",
        "1",
        "--filter-platform",
        PLATFORM,
    ];
    let metadata: Value = serde_json::from_str(&run(env!("CARGO"), &arguments)).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let by_id = |entries: Vec<Value>| -> BTreeMap<String, Value> {
        let id = |one: &Value| one["id"].as_str().unwrap().to_owned();
        entries.into_iter().map(|one| (id(&one), one)).collect()
    };
    let packages = by_id(list(&metadata["packages"]));
    let nodes = by_id(list(&metadata["resolve"]["nodes"]));
    let is_kinora = |id: &&String| packages[*id]["name"] == "kinora";
    let mut next = vec![packages.keys().find(is_kinora).unwrap().clone()];
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    while let Some(id) = next.pop() {
        let package = &packages[&id];
        let runs_at_build = list(&package["targets"])
            .iter()
            .any(|target| target["kind"][0] == "proc-macro");
        // Optional, and on only in test builds; this graph has the optional dependencies of all of its dependents.
        let is_for_tests = package["name"] == "kinora-testkit";
        if runs_at_build || is_for_tests || !seen.insert(id.clone()) {
            continue;
        }
        for dependency in list(&nodes[&id]["deps"]) {
            let kinds = list(&dependency["dep_kinds"]);
            if kinds.iter().any(|kind| kind["kind"].is_null()) {
                next.push(dependency["pkg"].as_str().unwrap().to_owned());
            }
        }
        if !package["source"].is_null() {
            found.push(Package::read(package));
        }
    }
    found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    assert!(found.len() > 100, "only {} packages", found.len());
    found
}

impl Package {
    fn read(package: &Value) -> Self {
        let text = |key: &str| package[key].as_str().unwrap().to_owned();
        let authors = package["authors"].as_array().unwrap().iter();
        let authors: Vec<&str> = authors.filter_map(Value::as_str).collect();
        let manifest = text("manifest_path");
        Self {
            name: text("name"),
            version: text("version"),
            licence: text("license"),
            authors: authors.join(", "),
            folder: Path::new(&manifest).parent().unwrap().to_owned(),
        }
    }

    /// Whether it may be taken under Apache-2.0 alone, whose text is printed once for all.
    fn is_apache(&self) -> bool {
        permits(&self.licence, &BTreeSet::from(["Apache-2.0".to_owned()]))
    }

    /// The texts that go with it, apart from that of Apache-2.0.
    fn texts(&self, all: &[Self]) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.folder)
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
            .filter(|name| {
                let name = name.to_uppercase();
                let wanted: &[&str] = if self.is_apache() {
                    &["NOTICE"]
                } else {
                    &NAMES
                };
                wanted.iter().any(|beginning| name.starts_with(beginning))
            })
            .filter(|name| self.folder.join(name).is_file())
            .collect();
        names.sort();
        let bundled = BUNDLED.iter().filter(|(package, _)| *package == self.name);
        names.extend(bundled.map(|(_, path)| (*path).to_owned()));
        let mut texts: Vec<String> = names
            .iter()
            .map(|name| plain(&fs::read(self.folder.join(name)).unwrap()))
            .collect();
        if let Some((_, other)) = SAME_AS.iter().find(|(name, _)| *name == self.name) {
            let other = all.iter().find(|package| package.name == *other).unwrap();
            texts.extend(other.texts(all));
        }
        if self.licence == "MIT"
            && !texts
                .iter()
                .any(|text| text.contains("Permission is hereby granted"))
        {
            texts.push(format!("Copyright (c) {}\n\n{}", self.authors, mit()));
        }
        assert!(
            self.is_apache() || !texts.is_empty(),
            "{} has no licence text",
            self.name
        );
        texts
    }
}

/// The text without what differs between copies of it: ends of lines and trailing spaces.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// The MIT licence from "Permission is hereby granted", from our own copy.
fn mit() -> String {
    let own = plain(&fs::read(root().join("LICENSE-MIT")).unwrap());
    own[own.find("Permission").unwrap()..].to_owned()
}

fn document(packages: &[Package]) -> String {
    let mut page = String::from(HEAD);
    for one in packages {
        writeln!(page, "  {} {}: {}", one.name, one.version, one.licence).unwrap();
    }
    let mut owners: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for package in packages {
        for text in package.texts(packages) {
            let owners = owners.entry(text).or_default();
            if owners.last() != Some(&package.name.as_str()) {
                owners.push(&package.name);
            }
        }
    }
    let mut texts: Vec<(Vec<&str>, String)> = owners
        .into_iter()
        .map(|(text, owners)| (owners, text))
        .collect();
    texts.sort();
    for font in FONTS {
        let path = format!("crates/engine-storyboard/fonts/{font}.LICENSE.txt");
        texts.push((vec![font], plain(&fs::read(root().join(path)).unwrap())));
    }
    let apache = plain(&fs::read(root().join("LICENSE-APACHE")).unwrap());
    texts.push((
        vec!["all packages whose licence permits Apache-2.0"],
        apache,
    ));
    for (owners, text) in texts {
        write!(page, "{RULE}{}\n\n{text}\n", owners.join(", ")).unwrap();
    }
    page
}

const HEAD: &str = "\
Kinora is licensed under MIT or Apache-2.0, at your choice. This binary also contains the works of
others that this page lists, under their licences.

Works in other languages, with the package that brings them:

  Fraunhofer FDK AAC (fdk-aac-sys): its own licence, below. It grants no patent licence.
  OpenH264 (openh264-sys2): BSD-2-Clause
  SQLite (libsqlite3-sys): in the public domain, https://sqlite.org/copyright.html
  libwebp (libwebp-sys): BSD-3-Clause
  mimalloc (libmimalloc-sys): MIT
  BoringSSL's cryptography (ring): below
  subsets of the Noto fonts: SIL Open Font License 1.1, below

A binary built without the feature `aac` leaves out FDK AAC.

Rust packages. Where a licence leaves a choice that includes Apache-2.0, that one is chosen. The
source of each is at https://crates.io/crates/NAME/VERSION.

";
