//! The licences of every package that this workspace is built from on this platform, against
//! the `allow` list of `deny.toml`; cargo-deny, where it is installed, reads the same list.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::files::{manifest, root};

pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn packages() -> Vec<Value> {
    let version = run("rustc", &["-vV"]);
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let arguments = [
        "metadata",
        "--format-version",
        "1",
        "--filter-platform",
        host,
    ];
    let metadata: Value = serde_json::from_str(&run(env!("CARGO"), &arguments)).unwrap();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let used: BTreeSet<&str> = nodes
        .iter()
        .filter_map(|node| node["id"].as_str())
        .collect();
    let mut packages = metadata["packages"].as_array().unwrap().clone();
    packages.retain(|package| used.contains(package["id"].as_str().unwrap()));
    packages
}

fn allowed() -> BTreeSet<String> {
    let deny = manifest("deny.toml");
    let list = deny["licenses"]["allow"].as_array().unwrap();
    list.iter()
        .map(|one| one.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_package_may_be_used_under_an_allowed_licence() {
    let allowed = allowed();
    let packages = packages();
    assert!(packages.len() > 50, "only {} packages", packages.len());
    for package in packages {
        let name = &package["name"];
        let Some(licence) = package["license"].as_str() else {
            panic!("{name} names no licence");
        };
        assert!(permits(licence, &allowed), "{name}: {licence}");
    }
}

#[test]
fn every_package_comes_from_the_public_registry_or_from_here() {
    for package in packages() {
        let source = package["source"].as_str();
        let known = source
            .is_none_or(|source| source == "registry+https://github.com/rust-lang/crates.io-index");
        assert!(known, "{}: {source:?}", package["name"]);
    }
}

#[test]
fn a_licence_expression_is_read_as_spdx_means_it() {
    let allowed = BTreeSet::from(["MIT", "Zlib", "A WITH B"].map(str::to_owned));
    for good in [
        "MIT",
        "MIT OR GPL-3.0",
        "GPL-3.0/MIT",
        "(GPL-3.0 OR MIT) AND Zlib",
        "A WITH B",
    ] {
        assert!(permits(good, &allowed), "{good}");
    }
    for wrong in [
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "GPL-3.0 OR (MIT AND A)",
        "A",
        "MIT WITH B",
        "",
    ] {
        assert!(!permits(wrong, &allowed), "{wrong}");
    }
}

/// Whether an SPDX expression (<https://spdx.github.io/spdx-spec/v2.3/SPDX-license-expressions/>)
/// leaves a choice that is allowed. `/`, which old manifests use, means `OR`.
pub(crate) fn permits(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let permitted = any_of(&mut rest, allowed);
    assert!(rest.is_empty(), "{expression}: cannot read from {rest:?}");
    permitted
}

fn any_of(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut permitted = all_of(rest, allowed);
    while take(rest, "OR") {
        permitted |= all_of(rest, allowed);
    }
    permitted
}

fn all_of(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut permitted = one(rest, allowed);
    while take(rest, "AND") {
        permitted &= one(rest, allowed);
    }
    permitted
}

fn one(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    if take(rest, "(") {
        let permitted = any_of(rest, allowed);
        assert!(
            take(rest, ")"),
            "a parenthesis is not closed before {rest:?}"
        );
        return permitted;
    }
    let Some((name, after)) = rest.split_first() else {
        return false;
    };
    *rest = after;
    if !take(rest, "WITH") {
        return allowed.contains(*name);
    }
    let Some((exception, after)) = rest.split_first() else {
        return false;
    };
    *rest = after;
    allowed.contains(&format!("{name} WITH {exception}"))
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    match rest.split_first() {
        Some((first, after)) if *first == word => {
            *rest = after;
            true
        }
        _ => false,
    }
}
