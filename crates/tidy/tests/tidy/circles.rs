//! No circles between the files of a crate: a reader can stop at what a file imports. A file
//! uses another when its code names an item that the other defines. `mod` lines and `pub use` only
//! show an item, so they are followed to where it is defined; tests may name anything.

use std::collections::{BTreeMap, BTreeSet};

use crate::files;
use crate::modules::{Crate, crates};

#[test]
fn files_of_a_crate_use_each_other_in_one_direction() {
    let mut wrong = Vec::new();
    for one in crates(&files::rust()) {
        let found = circles(&one);
        wrong.extend(
            found
                .iter()
                .map(|circle| format!("{}: {circle:?}", one.name)),
        );
    }
    assert!(wrong.is_empty(), "circles of files:\n{}", wrong.join("\n"));
}

/// Files that reach each other, in sorted groups of two or more.
fn circles(one: &Crate) -> Vec<Vec<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = one
        .uses
        .keys()
        .map(|file| (file.as_str(), reached(&one.uses, file)))
        .collect();
    let mut groups = BTreeSet::new();
    for (file, others) in &reach {
        let back = |other: &&&str| reach.get(**other).is_some_and(|back| back.contains(file));
        let mut group: Vec<String> = others
            .iter()
            .filter(back)
            .map(|other| (*other).to_owned())
            .collect();
        group.sort();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}

fn reached<'a>(uses: &'a BTreeMap<String, BTreeSet<String>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        for other in uses.get(file).into_iter().flatten() {
            if found.insert(other.as_str()) {
                next.push(other);
            }
        }
    }
    found
}

#[test]
fn a_circle_is_found_through_a_re_export_and_shown_items_are_none() {
    let source = |path: &str, text: &str| files::SourceFile {
        path: format!("crates/x/src/{path}"),
        text: text.to_owned(),
    };
    let found = |files: &[files::SourceFile]| {
        let all = crates(files);
        circles(&all[0])
    };
    let lib = source(
        "lib.rs",
        "mod a;\nmod b;\npub use a::A;\npub use b::{B, inner::C};\n",
    );
    let inner = source("b/inner.rs", "pub struct C;\n");
    let forward = source("a.rs", "use crate::B;\npub struct A(B);\n");
    let plain = source("b.rs", "pub mod inner;\npub struct B;\n");
    assert!(found(&[lib, forward, plain, inner]).is_empty());

    let lib = source(
        "lib.rs",
        "mod a;\nmod b;\npub use a::A;\npub use b::{B, inner::C};\n",
    );
    let inner = source("b/inner.rs", "pub struct C(super::B, crate::A);\n");
    let forward = source("a.rs", "use crate::b;\npub struct A(b::B);\n");
    let back = source(
        "b.rs",
        "pub mod inner;\npub struct B;\nfn f() { inner::new() }\n",
    );
    assert_eq!(
        found(&[lib, forward, back, inner]),
        [["a.rs", "b.rs", "b/inner.rs"]]
    );

    let lib = source("lib.rs", "mod a;\npub struct Top;\n");
    let only_tests =
        "use crate::Top;\nstruct A(Top);\n#[cfg(test)]\nmod tests {\n use super::*;\n}\n";
    assert!(found(&[lib, source("a.rs", only_tests)]).is_empty());
}
